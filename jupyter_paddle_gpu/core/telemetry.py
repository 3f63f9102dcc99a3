"""What GPUs and the host did at one moment. None is unknown, never zero, and ``unknown`` says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_paddle_gpu.core.device import DeviceKind


@dataclass(frozen=True)
class GpuSample:
    """One GPU or slice. ``taken_s``: when its values were seen (Unix time), None where they never were.

    ``stale`` is the reason why the values are older than the reading that shows them; None while they are fresh.
    ``memory_used_bytes`` is everybody's, ``memory_own_bytes`` of it what the session's processes hold and
    ``memory_others_bytes`` what other processes do. ``xids`` are the driver's error numbers since somebody looks, the
    newest last. ``unknown`` has a reason for each field that is None.
    """

    id: str
    kind: DeviceKind = DeviceKind.GPU
    name: str = ""
    taken_s: float | None = None
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    memory_own_bytes: int | None = None
    memory_others_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    clock_mhz: float | None = None
    throttled: tuple[str, ...] | None = None
    ecc_errors: int | None = None
    xids: tuple[int, ...] | None = None
    processes: int | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)
    stale: str | None = None


@dataclass(frozen=True)
class HostSample:
    """The machine, or the container where that is smaller. ``cpu_percent`` is of one core; 400 are four busy cores.

    ``cpu_limit_cores`` and ``memory_limit_bytes`` are the container's limits, or what the machine has;
    ``disk_free_bytes`` and ``disk_total_bytes`` are of the disk that takes the snapshots.
    """

    cpu_percent: float | None = None
    cpu_limit_cores: float | None = None
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelSample:
    """What a kernel said of itself at ``taken_s`` (Unix time). Much older than its Reading: it cannot speak, for C code
    holds its interpreter.

    ``step`` counts the finished steps of its training and ``steps_per_s`` is their rate since the sample before;
    ``state_bytes`` is what a save would hold and ``save_s`` what it would take; ``allocated_bytes`` are Paddle's live
    tensors on ``device``, ``reserved_bytes`` what its allocator holds for them, ``peak_bytes`` the most so far.
    """

    taken_s: float
    step: int | None = None
    steps_per_s: float | None = None
    state_bytes: int | None = None
    save_s: float | None = None
    device: str = ""
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_bytes: int | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """All that was seen at ``at_s`` (Unix time). ``fault``: why no GPU is seen at all, or None. ``kernel``: what the
    kernel has said last (None: nothing yet)."""

    at_s: float
    gpus: tuple[GpuSample, ...] = ()
    fault: str | None = None
    host: HostSample = HostSample()
    kernel: KernelSample | None = None
