"""Whether a kernel's ports take connections yet, and encrypt what they take where that is asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.core.errors import KernelStartError

_CHANNELS = ("shell_port", "iopub_port", "control_port", "stdin_port", "hb_port")
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1", "*": "127.0.0.1"}  # noqa: S104  # only compared
_CONNECT_S = 1.0
# How a ZMTP 3 connection begins: signature and version, to which the other end answers with its mechanism, too.
_GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00"
_GREETING_BYTES, _MECHANISM = 64, slice(12, 32)

_Address = str | tuple[str, int]


async def ports_answer(connection_file: Path) -> bool:
    """Whether every port that the file names is listened to. A file that is not there, or not whole yet: no.

    Raises KernelStartError where the file has keys and the kernel does not encrypt by them: its clients never could
    speak to it.
    """
    info = _read(connection_file)
    addresses = _addresses(info)
    for address in addresses:
        mechanism = await _connects(address, greets="curve_publickey" in info)
        if mechanism is None:
            return False
        if mechanism not in ("", "CURVE"):
            raise KernelStartError(
                f"The kernel does not encrypt its messages (it offers {mechanism}), and they would cross a network",
                "Use an image with ipykernel 7.3 or newer.",
            )
    return bool(addresses)


def _read(connection_file: Path) -> dict[str, Any]:
    try:
        info = json.loads(connection_file.read_bytes())
    except (OSError, ValueError):
        return {}
    return info if isinstance(info, dict) else {}


def _addresses(info: Mapping[str, Any]) -> list[_Address]:
    try:
        ports = [int(info[channel]) for channel in _CHANNELS]
    except (ValueError, KeyError, TypeError):
        return []
    host, ipc = str(info.get("ip", "127.0.0.1")), info.get("transport") == "ipc"
    if 0 in ports:  # the kernel chooses them and will write the file again
        return []
    return [f"{host}-{port}" if ipc else (_ANY_ADDRESS.get(host, host), port) for port in ports]


async def _connects(where: _Address, greets: bool) -> str | None:
    """Return the mechanism that ``where`` names when it ``greets``, "" where nobody asks; None: no answer."""
    opening = asyncio.open_unix_connection(where) if isinstance(where, str) else asyncio.open_connection(*where)
    try:
        reader, writer = await asyncio.wait_for(opening, _CONNECT_S)
    except (OSError, asyncio.TimeoutError):
        return None
    try:
        return await asyncio.wait_for(_mechanism(reader, writer), _CONNECT_S) if greets else ""
    except (OSError, EOFError, asyncio.TimeoutError):
        return None
    finally:
        writer.transport.abort()


async def _mechanism(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    writer.write(_GREETING)
    return (await reader.readexactly(_GREETING_BYTES))[_MECHANISM].rstrip(b"\0").decode(errors="replace")
