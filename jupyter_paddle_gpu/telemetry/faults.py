"""What follows from each return code of NVML, and what it means to who looks."""

from __future__ import annotations

from enum import Enum

import pynvml


class Policy(Enum):
    """What a failed call means for its field."""

    NEVER = "never"  # unknown, and not asked again until the driver is opened again
    NOW = "now"  # unknown now
    STALE = "stale"  # the GPU does not answer: its last values stay, the driver is opened again after a while


_NO_PERMISSION = "the driver allows it to others only, as for the whole GPU in the container of a slice"
_TABLE: dict[int, tuple[Policy, str]] = {
    1: (Policy.STALE, "the driver was closed under us"),
    3: (Policy.NEVER, "this device does not tell it"),
    4: (Policy.NOW, _NO_PERMISSION),
    6: (Policy.NOW, "the driver does not find it"),
    9: (Policy.STALE, "NVIDIA's driver is not loaded: load it, or ask who runs this machine"),
    12: (Policy.STALE, "NVIDIA's driver library is not here: install the driver, or start the container with GPUs"),
    13: (Policy.NEVER, "this driver is too old to tell it"),
    15: (
        Policy.STALE,
        "the GPU is lost: it fell off the bus, or is reset; only who runs this machine can bring it back",
    ),
    18: (Policy.STALE, "the driver was updated and not reloaded: restart the machine, or reload the driver"),
    999: (Policy.STALE, "unknown error of the driver: after a reload of it, restart the container"),
}


def policy_of(error: pynvml.NVMLError) -> Policy:
    """Return what to do; a code that nobody has thought of is STALE: no old value is ever shown as a new one."""
    return _TABLE.get(error.value, (Policy.STALE, ""))[0]


def reason_of(error: pynvml.NVMLError) -> str:
    """Return the reason to show, with the code of NVML."""
    reason = _TABLE.get(error.value, (Policy.STALE, str(error)))[1]
    return f"{reason} (NVML {error.value})"
