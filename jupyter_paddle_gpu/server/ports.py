"""Ports that stay a session's own while no kernel listens on them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress

_NAMES = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


class HeldPorts:
    """The ports of a connection, bound but not listened on: clients are refused and try again, and nobody else gets
    the port; a client that tries from a port of this machine cannot meet itself there."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def hold(self, connection: Mapping[str, object]) -> None:
        """Bind the ports of a TCP ``connection`` that are free. Other transports use files."""
        self.release()
        if connection.get("transport") != "tcp":
            return
        for name in _NAMES:
            holder = socket.socket()
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._sockets.append(holder)
            with suppress(OSError):  # still in use by the kernel that is just ending
                holder.bind((str(connection["ip"]), int(str(connection[name]))))

    def release(self) -> None:
        """Let the ports go, for the kernel that is about to bind them."""
        while self._sockets:
            self._sockets.pop().close()
