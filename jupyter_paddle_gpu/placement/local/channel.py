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
from jupyter_paddle_gpu.core.errors import AgentUnreachable, WireError
from jupyter_paddle_gpu.core.wire import MAX_LINE_BYTES, Hello, Message, Role, decode, encode

RETRY_S = 0.02  # between two looks at an agent that starts or ends: it takes 0.2 s, a look takes microseconds


class AgentProcess:
    """The agent as a process: our child, which we reap, or another server's child that we have adopted."""

    def __init__(self, pid: int, child: bool = False) -> None:
        self.pid = pid
        self.exit_code: int | None = None  # as shells say it; None while it runs, or where only its parent knew
        self._child = child
        self._started = _start_time(pid)

    def ended(self) -> bool:
        """Whether the process is no more."""
        if self._child:
            self._reap()
            return not self._child
        return self._started is None or _start_time(self.pid) != self._started

    def _reap(self) -> None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody of this process reaps all children
            self._started, self._child = None, False
            return
        if pid:
            code = os.waitstatus_to_exitcode(status)
            self.exit_code = code if code >= 0 else 128 - code
            self._started, self._child = None, False


def _start_time(pid: int) -> str | None:
    """Return when a process started, which tells it from a later one of the same number; None for a dead one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]  # proc(5): state is the 3rd field, starttime the 22nd


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
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        devices: tuple[Device, ...],
    ) -> None:
        self._path = path
        self._process = process
        self._reader, self._writer = streams
        self._devices = devices

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def pid(self) -> int:
        """The agent's process: the same over all restarts of its kernel."""
        return self._process.pid

    async def receive(self) -> Message | None:
        """See Placed."""
        while True:
            line = b""
            with suppress(OSError, asyncio.LimitOverrunError, ValueError):
                line = await self._reader.readline()
            if line.endswith(b"\n"):
                with suppress(WireError):  # an agent of another version: what we do not know does not concern us
                    return decode(line)
            elif not await self._reconnect():
                return None

    async def _reconnect(self) -> bool:
        self._writer.close()
        while not self._process.ended():
            with suppress(AgentUnreachable):
                self._reader, self._writer, _ = await connect(self._path, self._process, 1.0, str)
                return True
        return False

    async def send(self, message: Message) -> None:
        """See Placed."""
        try:
            self._writer.write(encode(message))
            await self._writer.drain()
        except OSError:
            raise AgentUnreachable("The agent of this session has just ended", "Try again in a moment.") from None

    async def close(self) -> None:
        """See Placed."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def wait_gone(self) -> int | None:
        """See Placed."""
        while not self._process.ended():  # noqa: ASYNC110  # a process that is not our child tells nobody
            await asyncio.sleep(RETRY_S)
        self._writer.close()
        return self._process.exit_code
