"""Discovery through the real pynvml, against a stand-in for the driver's library."""

from __future__ import annotations

import ctypes
import logging
import re
from typing import Any

import pynvml
import pytest

from jupyter_paddle_gpu.core.device import Device, DeviceKind
from jupyter_paddle_gpu.telemetry import nvml

GIB = 2**30


class Library:
    """Answers pynvml's calls in place of ``libnvidia-ml.so.1``. A handle is (GPU, slice); slice -1 is the GPU itself.

    ``failing`` names calls and the error code that they answer for a GPU.
    """

    def __init__(self, gpus: int, slices: dict[int, int], failing: dict[tuple[str, int], int]) -> None:
        self._gpus, self._slices, self._failing = gpus, slices, failing
        self.open = 0

    def __getattr__(self, name: str) -> Any:
        name = name.removesuffix("_v2")
        method = getattr(type(self), re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())

        def call(*arguments: Any) -> int:
            of_gpu = bool(arguments) and isinstance(arguments[0], pynvml.c_nvmlDevice_t)
            gpu = self._split(arguments[0])[0] if of_gpu else 0
            return self._failing.get((name, gpu), 0) or method(self, *arguments) or 0

        return call

    @staticmethod
    def _split(handle: Any) -> tuple[int, int]:
        address = ctypes.cast(handle, ctypes.c_void_p).value or 0
        return address // 100 - 1, address % 100 - 1

    @staticmethod
    def _point(target: Any, gpu: int, slice_: int) -> None:
        ctypes.cast(target, ctypes.POINTER(ctypes.c_void_p))[0] = (gpu + 1) * 100 + slice_ + 1

    def nvml_init_with_flags(self, flags: int) -> None:
        self.open += 1

    def nvml_shutdown(self) -> None:
        self.open -= 1

    def nvml_error_string(self, code: int) -> bytes:
        return b"error %d" % code

    def nvml_device_get_count(self, count: Any) -> None:
        count._obj.value = self._gpus

    def nvml_device_get_handle_by_index(self, index: Any, handle: Any) -> None:
        self._point(handle, index.value, -1)

    def nvml_device_get_mig_mode(self, handle: Any, current: Any, pending: Any) -> int:
        current._obj.value = int(self._split(handle)[0] in self._slices)
        return 0

    def nvml_device_get_max_mig_device_count(self, handle: Any, count: Any) -> None:
        count._obj.value = 7

    def nvml_device_get_mig_device_handle_by_index(self, handle: Any, index: Any, slice_: Any) -> int:
        gpu = self._split(handle)[0]
        if index.value >= self._slices[gpu]:
            return int(pynvml.NVML_ERROR_NOT_FOUND)
        self._point(slice_, gpu, index.value)
        return 0

    def nvml_device_get_memory_info(self, handle: Any, memory: Any) -> None:
        memory._obj.total = 10 * GIB if self._split(handle)[1] >= 0 else 80 * GIB

    def nvml_device_get_uuid(self, handle: Any, text: Any, size: Any) -> None:
        gpu, slice_ = self._split(handle)
        text.value = f"MIG-{gpu}-{slice_}".encode() if slice_ >= 0 else f"GPU-{gpu}".encode()

    def nvml_device_get_name(self, handle: Any, text: Any, size: Any) -> None:
        text.value = b"NVIDIA H200"


def driver(
    monkeypatch: pytest.MonkeyPatch,
    gpus: int,
    slices: dict[int, int] | None = None,
    failing: dict[tuple[str, int], int] | None = None,
) -> Library:
    library = Library(gpus, slices or {}, failing or {})
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return library


def test_whole_gpus_and_the_slices_of_divided_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    library = driver(monkeypatch, 3, slices={1: 2})
    assert nvml.discover() == [
        Device("GPU-0", DeviceKind.GPU, "NVIDIA H200", 80 * GIB),
        Device("MIG-1-0", DeviceKind.MIG, "NVIDIA H200", 10 * GIB),
        Device("MIG-1-1", DeviceKind.MIG, "NVIDIA H200", 10 * GIB),
        Device("GPU-2", DeviceKind.GPU, "NVIDIA H200", 80 * GIB),
    ]
    assert library.open == 0


def test_a_gpu_that_is_lost_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library = driver(monkeypatch, 2, failing={("nvmlDeviceGetUUID", 0): pynvml.NVML_ERROR_GPU_IS_LOST})
    with caplog.at_level(logging.WARNING):
        assert [device.id for device in nvml.discover()] == ["GPU-1"]
    assert "GPU 0 does not answer" in caplog.text
    assert library.open == 0


def test_what_is_only_shown_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = pynvml.NVML_ERROR_NOT_SUPPORTED
    calls = ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetName", "nvmlDeviceGetMigMode")
    driver(monkeypatch, 1, failing={(call, 0): unknown for call in calls})
    assert nvml.discover() == [Device("GPU-0")]


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetCount"])
def test_a_broken_driver_is_logged_and_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    driver(monkeypatch, 1, failing={(call, 0): pynvml.NVML_ERROR_UNKNOWN})
    with caplog.at_level(logging.WARNING):
        assert nvml.discover() == []
    assert "NVML does not" in caplog.text


def test_no_driver_is_no_fault(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    driver(monkeypatch, 1, failing={("nvmlInitWithFlags", 0): pynvml.NVML_ERROR_DRIVER_NOT_LOADED})
    assert nvml.discover() == []
    assert not caplog.records
