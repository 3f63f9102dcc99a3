"""The connection of a server to an agent of this machine, and the agent's end."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.errors import AgentUnreachable
from jupyter_paddle_gpu.core.wire import MAX_LINE_BYTES, Hello, Message, Role, encode
from jupyter_paddle_gpu.placement.base import Gone, Reconnected
from jupyter_paddle_gpu.placement.lines import AgentLines, Streams
from jupyter_paddle_gpu.telemetry.processes import find

RETRY_S = 0.02  # between two looks at an agent that starts or ends: it takes 0.2 s, a look takes microseconds


class AgentProcess:
    """The agent as a process: our child, which we reap, or another server's child that we have adopted."""

    def __init__(self, pid: int, child: bool = False) -> None:
        self.pid = pid
        self.exit_code: int | None = None  # as shells say it; None while it runs, or where only its parent knew
        self._child = child
        self._seen = find(pid)

    def ended(self) -> bool:
        """Whether the process is no more."""
        if self._child:
            self._reap()
            return not self._child
        now = find(self.pid)
        return self._seen is None or now is None or now.ended or now.started != self._seen.started

    def _reap(self) -> None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody of this process reaps all children
            self._seen, self._child = None, False
            return
        if pid:
            code = os.waitstatus_to_exitcode(status)
            self.exit_code = code if code >= 0 else 128 - code
            self._seen, self._child = None, False


async def connect(
    path: Path, process: AgentProcess | None, patience_s: float, failure: Callable[[], str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, int]:
    """Connect to the agent's socket, retrying for ``patience_s`` while ``process`` lives; say Hello.

    Returns the streams and the agent's pid. Raises AgentUnreachable with the text of ``failure()``.
    """
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(path, limit=MAX_LINE_BYTES + 1)
            peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            writer.write(encode(Hello(Role.SERVER, os.getpid())))
            return reader, writer, struct.unpack("3i", peer)[0]
        if (process is not None and process.ended()) or asyncio.get_running_loop().time() >= deadline:
            raise AgentUnreachable(failure())
        await asyncio.sleep(RETRY_S)


class LocalPlaced:
    """An agent of this machine. ``connect`` made the streams."""

    def __init__(
        self,
        path: Path,
        process: AgentProcess,
        streams: Streams,
        devices: tuple[Device, ...],
    ) -> None:
        self._path = path
        self._process = process
        self._lines = AgentLines(streams, self._reconnect)
        self._devices = devices

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def pid(self) -> int:
        """The agent's process: the same over all restarts of its kernel."""
        return self._process.pid

    async def receive(self) -> Message | Reconnected | None:
        """See Placed."""
        return await self._lines.receive()

    async def _reconnect(self) -> Streams | None:
        while not self._process.ended():
            with suppress(AgentUnreachable):
                reader, writer, _ = await connect(self._path, self._process, 1.0, str)
                return reader, writer
        return None

    async def send(self, message: Message) -> None:
        """See Placed."""
        await self._lines.send(message)

    async def close(self) -> None:
        """See Placed."""
        await self._lines.close()

    async def wait_gone(self) -> Gone:
        """See Placed."""
        while not self._process.ended():  # noqa: ASYNC110  # a process that is not our child tells nobody
            await asyncio.sleep(RETRY_S)
        return Gone(self._process.exit_code)
