"""What Jupyter believes of a kernel that was evicted: not busy for ever, and idle again once it is back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.server.view import SessionView


class KernelActivity:
    """Keeps ``execution_state`` of Jupyter's kernel managers true. ``in_loop`` runs a callable on the server's loop."""

    def __init__(self, kernel_manager: Any, in_loop: Callable[[Callable[[], None]], None]) -> None:
        self._kernels = kernel_manager
        self._in_loop = in_loop
        self._away: set[str] = set()

    def observe(self, view: SessionView) -> None:
        """Take a session's state from the sessions' thread."""
        self._in_loop(lambda: self._follow(view))

    def _follow(self, view: SessionView) -> None:
        if view.id not in self._kernels:
            self._away.discard(view.id)
            return
        kernel = self._kernels.get_kernel(view.id)
        if view.state is State.WAITING:
            self._away.add(view.id)
            kernel.execution_state, kernel.reason = "starting", view.why
        elif view.state is State.RUNNING and view.id in self._away:
            self._away.discard(view.id)
            kernel.reason = ""
            _greet(kernel)


def _greet(kernel: Any) -> None:
    """Ask the kernel for its info: everybody who listens to it sees that it is idle."""
    channel = kernel.connect_shell()
    channel.on_recv(lambda _reply: channel.close())
    kernel.session.send(channel, "kernel_info_request")
