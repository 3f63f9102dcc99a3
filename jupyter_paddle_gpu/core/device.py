"""A device that a session can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class DeviceKind(str, Enum):
    """What the device is; shown to users as it stands here."""

    GPU = "GPU"
    MIG = "MIG"
    CPU = "CPU"  # the one slot of a machine without a GPU


@dataclass(frozen=True)
class Device:
    """One lease's worth: ``id`` is what CUDA_VISIBLE_DEVICES takes (an index or a UUID); ``cpu`` for the CPU slot.

    ``memory_bytes`` is None where nobody says.
    """

    id: str
    kind: DeviceKind = DeviceKind.GPU
    name: str = ""
    memory_bytes: int | None = None


CPU_SLOT = Device("cpu", DeviceKind.CPU, "CPU slot")


def environment_of(devices: Sequence[Device]) -> dict[str, str]:
    """Return the variables that show a process these devices and no others."""
    ids = [device.id for device in devices if device.kind is not DeviceKind.CPU]
    return {"CUDA_VISIBLE_DEVICES": ",".join(ids)}
