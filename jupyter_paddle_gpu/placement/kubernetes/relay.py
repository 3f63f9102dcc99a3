"""The kernel's fixed ports on this machine, carried to whichever Pod is current: no client learns that it changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from jupyter_paddle_gpu.core.errors import PlacementError

PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
CONNECT_S = 5.0
_CHUNK_BYTES = 1 << 18


class Relay:
    """From the addresses of a ``connection`` (the content of a connection file) to the same ports of ``host``."""

    def __init__(self, connection: Mapping[str, object], host: str) -> None:
        self._connection, self._host = connection, host
        self._servers: list[asyncio.Server] = []
        self._carrying: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen; a client that comes before the kernel does is sent away, and tries again. Raises PlacementError."""
        ip = str(self._connection["ip"])
        for name in PORTS:
            port = int(str(self._connection[name]))
            try:
                self._servers.append(await asyncio.start_server(self._carry(port), ip, port))
            except OSError as error:
                await self.close()
                raise PlacementError(
                    f"The kernel's port {port} on {ip} is in use: {error.strerror}",
                    "Shut the kernel down and open it again.",
                ) from error

    async def close(self) -> None:
        """Let the ports go, and with them who is connected. May be repeated."""
        for server in self._servers:
            server.close()
        for task in list(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)
        self._servers.clear()

    def _carry(self, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._connect(port, reader, writer))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)

        return arrived

    async def _connect(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.TimeoutError):
                there = await asyncio.wait_for(asyncio.open_connection(self._host, port), CONNECT_S)
                try:
                    await _both_ways((reader, writer), there)
                finally:
                    there[1].close()
        finally:
            writer.close()  # what is on its way still arrives


async def _both_ways(
    here: tuple[asyncio.StreamReader, asyncio.StreamWriter], there: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    """Carry bytes until either side ends."""
    ways = {asyncio.ensure_future(_pump(here[0], there[1])), asyncio.ensure_future(_pump(there[0], here[1]))}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
