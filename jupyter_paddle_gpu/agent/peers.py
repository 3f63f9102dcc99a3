"""The agent's socket: who is connected, and lines in and out. Nobody's silence or slowness holds the others up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Protocol

from jupyter_paddle_gpu.core.errors import PlacementError, WireError
from jupyter_paddle_gpu.core.wire import MAX_LINE_BYTES, Hello, Message, Role, decode, encode

logger = logging.getLogger(__name__)

MAX_PATH_BYTES = 107  # sun_path without its final zero
HELLO_S = 10.0  # how long a connection may take to say who it is
MAX_UNREAD_BYTES = 4 << 20  # a peer that leaves this much unread is let go
MAX_SKIPPED_LINES = 16  # of one connection, which is then closed
_UCRED = struct.Struct("3i")


class Peer:
    """One connection that has said Hello."""

    def __init__(self, role: Role, pid: int, writer: asyncio.StreamWriter) -> None:
        self.role = role
        self.pid = pid
        self._writer = writer

    def __str__(self) -> str:
        return f"{self.role.value} {self.pid}"

    def send(self, message: Message) -> None:
        """Queue a message. Never blocks, never raises: a peer that is gone or does not read is let go."""
        transport = self._writer.transport
        if transport.is_closing():
            return
        self._writer.write(encode(message))
        if transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            logger.warning("%s does not read its messages: connection closed", self)
            transport.abort()

    def close(self) -> None:
        """Close once everything queued is sent."""
        self._writer.close()

    async def drained(self) -> None:
        """Return when everything queued is sent, or the peer is gone."""
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class Listener(Protocol):
    """Who owns the Peers. Called from the loop; must not block."""

    def joined(self, peer: Peer) -> None: ...
    def heard(self, peer: Peer, message: Message) -> None: ...
    def left(self, peer: Peer) -> None: ...


class Peers:
    """All connections to one Unix socket."""

    def __init__(self, path: Path, listener: Listener) -> None:
        self._path = path
        self._listener = listener
        self._peers: list[Peer] = []
        self._server: asyncio.Server | None = None
        self._inode = 0
        self._closed = False

    def of(self, *roles: Role) -> list[Peer]:
        """Return the connected peers of these roles, the newest last."""
        return [peer for peer in self._peers if peer.role in roles]

    def tell(self, peers: Iterable[Peer], message: Message) -> None:
        for peer in list(peers):
            peer.send(message)

    async def listen(self) -> None:
        """Open the socket, for our own account only. Raises PlacementError."""
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
                self._server = await asyncio.start_unix_server(self._serve, path, limit=MAX_LINE_BYTES)
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
        self._closed = True
        if self._server is not None:
            self._server.close()
        for peer in self._peers:
            peer.close()
        waits = [asyncio.ensure_future(peer.drained()) for peer in self._peers]
        if waits:
            await asyncio.wait(waits, timeout=patience_s)
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._inode:  # not the socket of an agent that came after us
                self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The life of one connection."""
        try:
            peer = await _introduced(reader, writer)
        except (WireError, OSError) as error:
            logger.warning("A connection was refused: %s", error)
            writer.close()
            return
        if self._closed:
            writer.close()
            return
        self._peers.append(peer)
        self._listener.joined(peer)
        try:
            async for message in _messages(reader, peer):
                self._listener.heard(peer, message)
        finally:
            self._peers.remove(peer)
            peer.close()
            self._listener.left(peer)


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


def _pid_of_own_account(writer: asyncio.StreamWriter) -> int:
    """Return who has connected. Raises WireError for another account."""
    connection: socket.socket = writer.get_extra_info("socket")
    pid, uid, _gid = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    if uid != os.getuid():
        raise WireError(f"it comes from user {uid}")
    return int(pid)


async def _introduced(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer:
    pid = _pid_of_own_account(writer)
    timer = asyncio.get_running_loop().call_later(HELLO_S, writer.transport.abort)
    try:
        line = await _line(reader)
    finally:
        timer.cancel()
    if not line:
        raise WireError("it said nothing")
    hello = decode(line)
    if not isinstance(hello, Hello):
        raise WireError(f"it began with {type(hello).__name__} instead of Hello")
    return Peer(hello.role, pid or hello.pid, writer)  # 0: in a namespace that we do not see


async def _messages(reader: asyncio.StreamReader, peer: Peer) -> AsyncIterator[Message]:
    """Yield what the peer says until it leaves. A line that does not decode is skipped: it may be of a newer agent."""
    skipped = 0
    try:
        while (line := await _line(reader)) and skipped <= MAX_SKIPPED_LINES:
            message = _decoded(line, peer)
            if message is None:
                skipped += 1
            else:
                yield message
    except (WireError, OSError) as error:
        logger.warning("Connection of %s closed: %s", peer, error)


def _decoded(line: bytes, peer: Peer) -> Message | None:
    try:
        return decode(line)
    except WireError as error:
        logger.warning("A line of %s was skipped: %s", peer, error)
        return None


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line; empty at the end. Raises WireError for one that is too long."""
    try:
        return await reader.readline()
    except ValueError:
        raise WireError(f"a line is longer than {MAX_LINE_BYTES} bytes") from None
