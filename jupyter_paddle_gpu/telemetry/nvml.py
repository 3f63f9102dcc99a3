"""The GPUs that NVIDIA's driver shows: whole ones, and the slices of those that are divided (MIG)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import pynvml

from jupyter_paddle_gpu.core.device import Device, DeviceKind

log = logging.getLogger(__name__)

# What a call may answer on a healthy machine, meaning "not here": no driver, no permission, not a MIG device.
_ABSENT = (
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
)


@contextlib.contextmanager
def opened() -> Iterator[bool]:
    """Open NVML for a with block and yield whether a driver answers. A driver that is broken is logged, not raised."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value not in _ABSENT:
            log.warning("NVML does not open: %s. GPUs of this machine are not seen.", error)
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(pynvml.NVMLError):  # a driver that went meanwhile has closed it already
            pynvml.nvmlShutdown()


def discover() -> list[Device]:
    """Return this machine's whole GPUs and MIG slices, by their UUIDs; empty where no driver answers."""
    with opened() as present:
        if not present:
            return []
        try:
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            log.warning("NVML does not count the GPUs: %s. None is seen.", error)
            return []
        return [device for index in range(count) for device in _of_gpu(index)]


def _of_gpu(index: int) -> list[Device]:
    """Return the GPU itself, or its slices where it is divided; empty (and logged) where it does not answer."""
    try:
        whole = pynvml.nvmlDeviceGetHandleByIndex(index)
        return [describe(handle, kind) for handle, kind in parts(whole)]
    except pynvml.NVMLError as error:
        log.warning("GPU %d does not answer: %s. It is left out.", index, error)
        return []


def parts(handle: Any) -> list[tuple[Any, DeviceKind]]:
    """Return NVML's handle of the whole GPU again, or those of its slices where it is divided. Raises NVMLError."""
    divided = _is_divided(handle)
    slices = [] if divided is False else [(slice_, DeviceKind.MIG) for slice_ in _slices(handle)]
    return slices if slices or divided else [(handle, DeviceKind.GPU)]


def _is_divided(handle: Any) -> bool | None:
    """None: the driver does not say it to us, as in the container of a slice; the slices that it shows decide."""
    try:
        current, _pending = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NO_PERMISSION:
            return None
        if error.value in _ABSENT:
            return False
        raise
    return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)


def _slices(handle: Any) -> Iterator[Any]:
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except pynvml.NVMLError as error:
            if error.value not in _ABSENT:
                raise


def describe(handle: Any, kind: DeviceKind) -> Device:
    """Return the device; without its UUID nobody could be given it, the rest is for show. Raises NVMLError."""
    try:
        memory_bytes: int | None = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except pynvml.NVMLError:
        memory_bytes = None  # unknown is not zero
    try:
        name = pynvml.nvmlDeviceGetName(handle)
    except pynvml.NVMLError:
        name = ""
    return Device(pynvml.nvmlDeviceGetUUID(handle), kind, name, memory_bytes)
