"""The agent's socket: who is connected, and lines in and out. Nobody's silence or slowness holds the others up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import struct
from pathlib import Path
from typing import Protocol, cast

from jupyter_paddle_gpu.core.agentspec import Listen
from jupyter_paddle_gpu.core.errors import PlacementError, UnknownMessage, WireError
from jupyter_paddle_gpu.core.wire import MAX_LINE_BYTES, Hello, Message, Role, decode, encode
from jupyter_paddle_gpu.placement.tls import shared_key

logger = logging.getLogger(__name__)

MAX_PATH_BYTES = 107  # sun_path without its final zero
HELLO_S = 10.0  # how long a connection may take to say who it is
MAX_UNREAD_BYTES = 4 << 20  # a peer that leaves this much unread is let go
MAX_SKIPPED_LINES = 16  # of one connection, which is then closed
_UCRED = struct.Struct("3i")


class Listener(Protocol):
    """Who owns the Peers. Called from the loop; must not block."""

    def joined(self, peer: Peer) -> None: ...
    def heard(self, peer: Peer, message: Message) -> None: ...
    def left(self, peer: Peer) -> None: ...


class Peer(asyncio.Protocol):
    """One connection; the listener learns of it once it has said Hello."""

    role: Role | None = None  # None until Hello
    pid = 0

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._rest = b""
        self._skipped = 0
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __str__(self) -> str:
        return "a connection" if self.role is None else f"{self.role.value} {self.pid}"

    def send(self, message: Message) -> None:
        """Queue a message. Never blocks, never raises: a peer that is gone or does not read is let go."""
        if self._transport.is_closing():
            return
        self._transport.write(encode(message))
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._refuse("it does not read its messages")

    def close(self) -> None:
        """Close once everything queued is sent; at once where there was no Hello."""
        self._transport.abort() if self.role is None else self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._hello_timer = asyncio.get_running_loop().call_later(HELLO_S, self._refuse, "it said nothing")
        self._peers.opened(self)
        connection: socket.socket = transport.get_extra_info("socket")
        if connection.family != socket.AF_UNIX:
            return  # by TLS it has proved the key
        self.pid, uid, _gid = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        if uid != os.getuid():
            self._refuse(f"it comes from user {uid}")

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not self._transport.is_closing():
                self._read(line)
        if len(self._rest) > MAX_LINE_BYTES:
            self._refuse(f"a line is longer than {MAX_LINE_BYTES} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        self._hello_timer.cancel()
        self._peers.lost(self)
        self.gone.set_result(None)

    def _read(self, line: bytes) -> None:
        """Take one line. One that does not decode is skipped: it may be of another version of us."""
        try:
            message = decode(line)
        except WireError as error:
            logger.warning("A line of %s was skipped: %s", self, error)
            self._skipped += not isinstance(error, UnknownMessage)
            if self.role is None or self._skipped > MAX_SKIPPED_LINES:
                self._refuse("it does not speak our language")
            return
        if self.role is not None:
            self._peers.listener.heard(self, message)
        elif isinstance(message, Hello):
            self._hello_timer.cancel()
            self.role = message.role
            self.pid = self.pid or message.pid  # 0: in a namespace of processes that we do not see
            self._peers.listener.joined(self)
        else:
            self._refuse(f"it began with {type(message).__name__} instead of Hello")

    def _refuse(self, reason: str) -> None:
        logger.warning("Closed %s: %s", self, reason)
        self._transport.abort()


class Peers:
    """All connections to one Unix socket, and to a port where ``listen`` names one."""

    def __init__(self, path: Path, listener: Listener, listen: Listen | None = None) -> None:
        self._path = path
        self._listen = listen
        self.listener = listener
        self._open: list[Peer] = []
        self._servers: list[asyncio.Server] = []
        self._inode = 0

    def of(self, *roles: Role) -> list[Peer]:
        """Return the connected peers of these roles, the newest last."""
        return [peer for peer in self._open if peer.role in roles]

    async def listen(self) -> None:
        """Open the socket, for our own account only, and the port. Raises PlacementError."""
        if self._listen is not None:
            await self._open_port(self._listen)
        await self._open_socket()

    async def _open_port(self, listen: Listen) -> None:
        try:
            context = shared_key(listen.pem, listens=True)
            self._servers.append(
                await asyncio.get_running_loop().create_server(
                    lambda: Peer(self), sock=_bound(listen.port), ssl=context, ssl_handshake_timeout=HELLO_S
                )
            )
        except ssl.SSLError as error:
            raise PlacementError(f"The agent's key {listen.pem} cannot be used: {error}") from error
        except OSError as error:
            raise PlacementError(f"The agent cannot listen on port {listen.port}: {error.strerror or error}") from error

    async def _open_socket(self) -> None:
        path = self._path
        if (length := len(os.fsencode(path))) > MAX_PATH_BYTES:
            raise PlacementError(
                f"The agent's socket path has {length} bytes, Linux allows {MAX_PATH_BYTES}: {path}",
                "Set JUPYTER_RUNTIME_DIR to a shorter directory.",
            )
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_stale(path)
            old_mask = os.umask(0o177)
            try:
                self._servers.append(await asyncio.get_running_loop().create_unix_server(lambda: Peer(self), path))
            finally:
                os.umask(old_mask)
            self._inode = path.stat().st_ino
        except OSError as error:
            raise PlacementError(
                f"The agent cannot listen on {path}: {error.strerror or error}",
                "Set JUPYTER_RUNTIME_DIR to a directory that you can write.",
            ) from error

    async def close(self, patience_s: float) -> None:
        """Close everything; what is queued for the peers gets ``patience_s`` to be read."""
        for server in self._servers:
            server.close()
        for peer in list(self._open):
            peer.close()
        if self._open:
            await asyncio.wait([peer.gone for peer in self._open], timeout=patience_s)
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._inode:  # not the socket of an agent that came after us
                self._path.unlink()

    def opened(self, peer: Peer) -> None:
        """Called by a peer when it has connected."""
        self._open.append(peer)

    def lost(self, peer: Peer) -> None:
        """Called by a peer when its connection has ended."""
        self._open.remove(peer)
        if peer.role is not None:
            self.listener.left(peer)


def _bound(port: int) -> socket.socket:
    """Return a socket on this port of all addresses, of both families where the machine has both."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):  # IPv6 is there, but switched off
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def _remove_stale(path: Path) -> None:
    """Remove the socket of an agent that was killed; raise OSError when one answers there."""
    if not path.exists():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
    raise OSError("another agent answers there")
