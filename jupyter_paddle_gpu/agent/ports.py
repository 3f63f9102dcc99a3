"""Whether a kernel's ports take connections yet."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

_CHANNELS = ("shell_port", "iopub_port", "control_port", "stdin_port", "hb_port")
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1", "*": "127.0.0.1"}  # noqa: S104  # only compared
_CONNECT_S = 1.0


async def ports_answer(connection_file: Path) -> bool:
    """Whether every port that the file names is listened to. A file that is not there, or not whole yet: no."""
    addresses = _addresses(connection_file)
    for address in addresses:
        if not await _connects(address):
            return False
    return bool(addresses)


def _addresses(connection_file: Path) -> list[str | tuple[str, int]]:
    try:
        info = json.loads(connection_file.read_bytes())
        ports = [int(info[channel]) for channel in _CHANNELS]
        host = str(info.get("ip", "127.0.0.1"))
        ipc = info.get("transport") == "ipc"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    if 0 in ports:  # the kernel chooses them and will write the file again
        return []
    return [f"{host}-{port}" if ipc else (_ANY_ADDRESS.get(host, host), port) for port in ports]


async def _connects(where: str | tuple[str, int]) -> bool:
    opening = asyncio.open_unix_connection(where) if isinstance(where, str) else asyncio.open_connection(*where)
    try:
        _reader, writer = await asyncio.wait_for(opening, _CONNECT_S)
    except (OSError, asyncio.TimeoutError):
        return False
    writer.transport.abort()
    return True
