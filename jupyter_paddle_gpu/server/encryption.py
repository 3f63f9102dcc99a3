"""CurveZMQ keys for kernels whose messages leave this machine."""

from __future__ import annotations

from typing import Any

import zmq

from jupyter_paddle_gpu.core.errors import KernelStartError


def give_keys(kernel_manager: Any) -> None:
    """Let a kernel of ``kernel_manager`` and its clients speak CurveZMQ, by keys that last as long as its ports.

    They stand in the connection file, as the key that signs the messages does. May be repeated. Raises
    KernelStartError where Jupyter's client, or the zmq below it, cannot encrypt: nothing is sent in the clear instead.
    """
    if not hasattr(kernel_manager, "curve_publickey"):
        raise KernelStartError(
            "This jupyter_client cannot encrypt the messages of a kernel on another machine",
            'Run: pip install "jupyter-client>=8.9", then start the server again.',
        )
    if not zmq.has("curve"):
        raise KernelStartError(
            "This libzmq was built without CURVE: messages to another machine cannot be encrypted",
            "Install pyzmq from PyPI, whose libzmq has it.",
        )
    if kernel_manager.curve_publickey is None:
        kernel_manager.curve_publickey, kernel_manager.curve_secretkey = zmq.curve_keypair()
