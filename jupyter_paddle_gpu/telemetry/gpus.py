"""What the GPUs do, asked of NVML field by field: a field that fails costs that field, a GPU that fails that GPU."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pynvml

from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.telemetry import GpuSample
from jupyter_paddle_gpu.telemetry import nvml
from jupyter_paddle_gpu.telemetry.faults import Policy, policy_of, reason_of
from jupyter_paddle_gpu.telemetry.tenants import OTHERS, OWN, Tenants
from jupyter_paddle_gpu.telemetry.xids import XidWatch

REOPEN_FIRST_S = 1.0  # after a fault; twice as long after each more
REOPEN_LONGEST_S = 30.0
NOT_SHOWN = "the driver does not show it any more"

_THROTTLES = {
    0x4: "power limit", 0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake", 0x10: "sync boost"
}  # fmt: skip  # bits of NVML's reasons; idle and clocks that a user has set are no throttling


def _throttled(handle: Any) -> tuple[str, ...]:
    reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    return tuple(dict.fromkeys(name for bit, name in _THROTTLES.items() if reasons & bit))


def _ecc_errors(handle: Any) -> int:
    """Uncorrected ones since the driver was loaded."""
    kind, since = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    return int(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, since))


# One call or a few microseconds each; PCIe throughput takes 20 ms and is not here.
_FIELDS: dict[str, Callable[[Any], Any]] = {
    "memory": pynvml.nvmlDeviceGetMemoryInfo,
    "utilization_percent": lambda handle: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
    "temperature_c": lambda handle: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
    "power_w": lambda handle: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
    "clock_mhz": lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
    "throttled": _throttled,
    "ecc_errors": _ecc_errors,
    "processes": pynvml.nvmlDeviceGetComputeRunningProcesses,
}


@dataclass
class _Gpu:
    """One device as it is known between readings; ``handle`` is None while it does not answer.

    ``whole`` is the UUID of the GPU that it is, or is a slice of: of that the driver tells Xid errors.
    """

    handle: Any
    index: int
    last: GpuSample
    whole: str = ""
    never: dict[str, str] = field(default_factory=dict)


class GpuReader:
    """Reads the devices in ``wanted`` (UUIDs or indexes; None: all of the machine), between enter and exit.

    For one thread. No fault is raised: it is in what is read, and goes when the driver or the GPU is back.
    """

    def __init__(self, wanted: Collection[str] | None = None) -> None:
        self._wanted = wanted
        self._gpus: dict[str, _Gpu] = {}
        self._is_open = False
        self._fault: str | None = None
        self._reopen_s: float | None = float("-inf")  # when to open the driver (again), in the clock of read()
        self._pause_s = REOPEN_FIRST_S
        self._xids = XidWatch()
        self._tenants = Tenants()

    def __enter__(self) -> GpuReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def read(self, at_s: float, clock_s: float) -> tuple[tuple[GpuSample, ...], str | None]:
        """Return a sample for each device, and why there is none at all (or None).

        ``at_s``: Unix time, now, to show; ``clock_s``: now on a clock that only grows, to wait by.
        """
        if self._wanted is not None and not self._wanted:
            return (), None
        if self._reopen_s is not None and clock_s >= self._reopen_s:
            self._reopen()
        self._xids.read()
        samples = tuple(self._sample(gpu, at_s) for gpu in self._gpus.values())
        if self._fault is None and all(sample.stale is None for sample in samples):
            self._pause_s = REOPEN_FIRST_S
        elif self._reopen_s is None:
            self._reopen_s = clock_s + self._pause_s
            self._pause_s = min(2 * self._pause_s, REOPEN_LONGEST_S)
        return samples, self._fault

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._xids.close()
            with contextlib.suppress(pynvml.NVMLError):  # a driver that went meanwhile has closed it already
                pynvml.nvmlShutdown()

    def _reopen(self) -> None:
        self._close()
        self._reopen_s = None
        for gpu in self._gpus.values():
            gpu.handle = None
            gpu.last = dataclasses.replace(gpu.last, stale=NOT_SHOWN)  # until it is found again, or what became of it
        try:
            pynvml.nvmlInit()
            self._is_open = True
            self._fault = None
            for index in range(pynvml.nvmlDeviceGetCount()):
                self._find(index)
        except pynvml.NVMLError as error:
            self._fault = reason_of(error)

    def _find(self, index: int) -> None:
        """Take the GPU, or its slices. One that does not answer is shown by what is known of it, or its index."""
        try:
            whole = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(whole)
            for handle, kind in nvml.parts(whole):
                self._take(_Gpu(handle, index, GpuSample(""), uuid), nvml.describe(handle, kind))
            if any(gpu.whole == uuid and gpu.handle is not None for gpu in self._gpus.values()):
                self._xids.add(uuid, whole)
        except pynvml.NVMLError as error:
            known = [gpu for gpu in self._gpus.values() if gpu.index == index]
            if not known and self._is_wanted(str(index), index):
                known = [_Gpu(None, index, GpuSample(str(index)))]
                self._gpus[str(index)] = known[0]
            for gpu in known:
                gpu.last = dataclasses.replace(gpu.last, stale=reason_of(error))

    def _take(self, gpu: _Gpu, device: Device) -> None:
        if not self._is_wanted(device.id, gpu.index):
            return
        self._gpus.pop(str(gpu.index), None)  # shown by its index while it did not answer
        known = self._gpus.get(device.id)
        fresh = GpuSample(device.id, device.kind, device.name, memory_total_bytes=device.memory_bytes)
        gpu.last = known.last if known else fresh
        self._gpus[device.id] = gpu

    def _is_wanted(self, id_: str, index: int) -> bool:
        return self._wanted is None or id_ in self._wanted or str(index) in self._wanted

    def _sample(self, gpu: _Gpu, at_s: float) -> GpuSample:
        if self._fault is not None or gpu.handle is None:
            gpu.last = dataclasses.replace(gpu.last, stale=self._fault or gpu.last.stale)
            return gpu.last
        try:
            values, unknown = _ask(gpu)
        except pynvml.NVMLError as error:
            gpu.last = dataclasses.replace(gpu.last, stale=reason_of(error))
            return gpu.last
        _spread_memory(values, unknown)
        _spread_processes(values, unknown, self._tenants)
        values["xids"], reason = self._xids.of(gpu.whole)
        unknown |= {"xids": reason} if reason else {}
        last = gpu.last
        gpu.last = GpuSample(last.id, last.kind, last.name, taken_s=at_s, unknown=unknown, **values)
        return gpu.last


def _ask(gpu: _Gpu) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what each call found, or why it did not. Raises NVMLError when the GPU does not answer any more."""
    values: dict[str, Any] = {}
    unknown = dict(gpu.never)
    for name, ask in _FIELDS.items():
        if name in gpu.never:
            continue
        try:
            values[name] = ask(gpu.handle)
        except pynvml.NVMLError as error:
            policy = policy_of(error)
            if policy is Policy.STALE:
                raise
            unknown[name] = reason_of(error)
            if policy is Policy.NEVER:
                gpu.never[name] = unknown[name]
    return values, unknown


def _spread_memory(values: dict[str, Any], unknown: dict[str, str]) -> None:
    memory = values.pop("memory", None)
    if memory is None:
        reason = unknown.pop("memory")
        unknown |= {"memory_used_bytes": reason, "memory_total_bytes": reason}
    else:
        values |= {"memory_used_bytes": int(memory.used), "memory_total_bytes": int(memory.total)}


def _spread_processes(values: dict[str, Any], unknown: dict[str, str], tenants: Tenants) -> None:
    processes = values.get("processes")
    if processes is None:
        unknown |= dict.fromkeys((OWN, OTHERS), unknown["processes"])
        return
    known, reasons = tenants.shares(processes)
    values |= {"processes": len(processes), **known}
    unknown |= reasons
