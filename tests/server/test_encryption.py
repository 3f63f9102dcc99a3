"""A Jupyter that cannot encrypt starts no kernel on another machine."""

from __future__ import annotations

import pytest
from jupyter_client.manager import KernelManager

from jupyter_paddle_gpu.core.errors import KernelStartError
from jupyter_paddle_gpu.server.encryption import give_keys


class ManagerOf86:
    """A kernel manager as jupyter_client 8.6 has it, without keys."""


def test_keys_are_made_once_and_stand_in_the_connection() -> None:
    manager = KernelManager()
    give_keys(manager)
    first = manager.get_connection_info()
    give_keys(manager)
    assert manager.get_connection_info() == first
    assert len(first["curve_publickey"]) == len(first["curve_secretkey"]) == 40


def test_an_older_jupyter_client_is_named() -> None:
    with pytest.raises(KernelStartError, match=r"jupyter-client>=8\.9"):
        give_keys(ManagerOf86())
