"""What a machine has to lend: declared by its administrator in ``machine.json``, or found."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from jupyter_paddle_gpu.core.codec import from_plain
from jupyter_paddle_gpu.core.device import CPU_SLOT, Device
from jupyter_paddle_gpu.core.errors import PlacementError, RequestError, WireError
from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER, Ladder

log = logging.getLogger(__name__)

_DEVICE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9/_.-]*")  # what CUDA_VISIBLE_DEVICES takes as one
EXAMPLE = '{"gpus": ["0", "1"], "tiers": {"urgent": {"priority": 1000}, "notebook": {"priority": -10}}}'


@dataclass(frozen=True)
class Machine:
    """The devices of a machine and its ladder of tiers."""

    devices: tuple[Device, ...]
    ladder: Ladder = DEFAULT_LADDER


def read_machine(path: Path) -> Machine:
    """Read the administrator's file; what it does not say is found out: GPUs by NVML, else one CPU slot.

    Raises PlacementError that names the file and the fault.
    """
    try:
        text = _read_trusted(path)
    except FileNotFoundError:
        return Machine(_found_devices())
    except (OSError, UnicodeDecodeError, WireError) as error:
        raise PlacementError(f"{path} cannot be read: {error}", "Ask the administrator of this machine.") from None
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or set(data) - {"gpus", "tiers"}:
            raise WireError("it needs an object with the fields gpus and tiers")
        devices = _declared_devices(data["gpus"]) if "gpus" in data else _found_devices()
        ladder = Ladder.from_mapping(data["tiers"]) if "tiers" in data else DEFAULT_LADDER
    except (ValueError, TypeError, AttributeError, RecursionError, WireError, RequestError) as error:
        raise PlacementError(f"{path} is not understood: {error}", f"It should look like {EXAMPLE}.") from None
    return Machine(devices, ladder)


def _read_trusted(path: Path) -> str:
    """Return the text of the directory owner's or root's file; anybody else's is as if it were not there."""
    status = path.lstat()
    if status.st_uid not in (0, path.parent.stat().st_uid):
        log.warning("%s is ignored: it belongs neither to root nor to the owner of its directory.", path)
        raise FileNotFoundError(path)
    if not stat.S_ISREG(path.stat().st_mode):
        raise WireError("it is not a file")
    return path.read_text(encoding="utf-8")


def _declared_devices(entries: object) -> tuple[Device, ...]:
    if not isinstance(entries, list) or not entries:
        raise WireError("gpus needs a list of device ids")
    devices = tuple(Device(entry) if isinstance(entry, str) else from_plain(Device, entry) for entry in entries)
    ids = [device.id for device in devices]
    if bad := [name for name in ids if not _DEVICE_ID.fullmatch(name)]:
        raise WireError(f"{bad[0]!r} is no index and no UUID of a GPU")
    if len(set(ids)) != len(ids):
        raise WireError(f"the ids of gpus must differ: {ids}")
    return devices


def memory_bytes() -> int:
    """Return the bytes of main memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _found_devices() -> tuple[Device, ...]:
    from jupyter_paddle_gpu.telemetry import nvml  # 15 ms that a server's start need not wait for

    return tuple(nvml.discover()) or (CPU_SLOT,)
