"""What is read of GPUs that work, are divided, are lost and come back: the real nvidia-ml-py, a driver in C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_paddle_gpu.telemetry.gpus import NOT_SHOWN, REOPEN_FIRST_S, REOPEN_LONGEST_S
from tests.telemetry.driver import Machine

GONE = (1, 9, 12, 15, 18, 999)


class Look:
    """A process that looks at a machine; it ends with the test."""

    def __init__(self, machine: Machine, *wanted: str) -> None:
        environment = os.environ | machine.environment
        command = [sys.executable, "-m", "tests.telemetry.look", *wanted]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def at(self, at_s: float) -> tuple[list[dict[str, Any]], str | None]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(at_s, file=self.process.stdin, flush=True)
        gpus, fault = json.loads(self.process.stdout.readline())
        return gpus, fault


@pytest.fixture
def look(machine: Machine) -> Iterator[Any]:
    looks = []

    def begin(*wanted: str) -> Look:
        looks.append(Look(machine, *wanted))
        return looks[-1]

    yield begin
    for one in looks:
        one.process.communicate()  # its input ends, and so does it
        assert one.process.returncode == 0


def test_a_gpu_in_numbers(machine: Machine, look: Any) -> None:
    process = look()
    own, other = process.process.pid, os.getpid()
    told = ["value nvmlDeviceGetCurrentClocksEventReasons 36", "value nvmlDeviceGetTemperature 91"]
    machine.is_now("gpus 1", *told, f"runs 0 {own} 512", f"runs 0 {other} 1024")
    (gpu,), fault = process.at(100)
    assert fault is None
    assert gpu == {
        "id": "GPU-0", "kind": "GPU", "name": "Stand-in 80GB", "taken_s": 100, "utilization_percent": 50,
        "memory_used_bytes": 2 << 30, "memory_total_bytes": 80 << 30, "temperature_c": 91, "power_w": 300,
        "clock_mhz": 1410, "throttled": ["power limit", "heat"], "ecc_errors": 0, "xids": [], "processes": 2,
        "unknown": {}, "stale": None, "memory_own_bytes": 512 << 20, "memory_others_bytes": 1 << 30,
    }  # fmt: skip


@pytest.mark.parametrize("count", [8, 64])
def test_every_gpu_is_read(machine: Machine, look: Any, count: int) -> None:
    machine.is_now(f"gpus {count}")
    gpus, _fault = look().at(0)
    assert [gpu["id"] for gpu in gpus] == [f"GPU-{index}" for index in range(count)]


def test_only_the_wanted_are_read(machine: Machine, look: Any) -> None:
    machine.is_now("gpus 4", "mig 3 2")
    gpus, _fault = look("GPU-1", "MIG-3-1").at(0)
    assert [gpu["id"] for gpu in gpus] == ["GPU-1", "MIG-3-1"]


def test_a_slice_has_memory_and_no_utilization(machine: Machine, look: Any) -> None:
    machine.is_now("gpus 1", "mig 0 1")
    (gpu,), _fault = look().at(0)
    assert (gpu["kind"], gpu["memory_total_bytes"]) == ("MIG", 10 << 30)
    assert gpu["utilization_percent"] is None
    assert "does not tell" in gpu["unknown"]["utilization_percent"]


@pytest.mark.parametrize(("code", "comes_back"), [(3, False), (13, False), (4, True), (6, True)])
def test_a_field_that_fails_costs_this_field(machine: Machine, look: Any, code: int, comes_back: bool) -> None:
    machine.is_now("gpus 1", f"answer nvmlDeviceGetPowerUsage {code}")
    process = look()
    (gpu,), _fault = process.at(0)
    assert (gpu["power_w"], gpu["temperature_c"], gpu["stale"]) == (None, 40, None)
    assert f"NVML {code}" in gpu["unknown"]["power_w"]
    machine.is_now("gpus 1")
    (gpu,), _fault = process.at(1)
    assert (gpu["power_w"] is not None) == comes_back


@pytest.mark.parametrize("code", GONE)
def test_a_lost_gpu_keeps_its_last_values_and_comes_back(machine: Machine, look: Any, code: int) -> None:
    machine.is_now("gpus 2")
    process = look()
    process.at(0)
    machine.is_now("gpus 2", f"answer nvmlDeviceGetMemoryInfo@1 {code}", "value nvmlDeviceGetTemperature@0 60")
    (well, lost), fault = process.at(1)
    assert (well["temperature_c"], well["stale"], fault) == (60, None, None)
    assert (lost["taken_s"], lost["temperature_c"]) == (0, 40)
    assert f"NVML {code}" in lost["stale"]
    machine.is_now("gpus 2")
    (_well, back), _fault = process.at(1 + REOPEN_FIRST_S)
    assert (back["taken_s"], back["stale"]) == (1 + REOPEN_FIRST_S, None)


def test_a_gpu_that_was_lost_before_anybody_looked_is_shown_by_its_index(machine: Machine, look: Any) -> None:
    machine.is_now("gpus 2", "answer nvmlDeviceGetHandleByIndex_v2@1 15")
    process = look()
    (well, lost), _fault = process.at(0)
    assert (well["id"], lost["id"], lost["taken_s"]) == ("GPU-0", "1", None)
    assert "lost" in lost["stale"]
    machine.is_now("gpus 2")
    gpus, _fault = process.at(REOPEN_FIRST_S)
    assert [(gpu["id"], gpu["stale"]) for gpu in gpus] == [("GPU-0", None), ("GPU-1", None)]


@pytest.mark.parametrize("code", GONE)
def test_a_driver_that_goes_and_comes(machine: Machine, look: Any, code: int) -> None:
    process = look()
    process.at(0)
    machine.is_now("gpus 1", f"answer * {code}")
    for at_s in range(1, 200):
        (gpu,), _fault = process.at(at_s)
        assert f"NVML {code}" in gpu["stale"]
    machine.is_now("gpus 1")
    (gpu,), fault = process.at(200 + REOPEN_LONGEST_S)
    assert (gpu["stale"], fault) == (None, None)


def test_what_each_process_holds_may_be_unknown(machine: Machine, look: Any) -> None:
    machine.is_now("gpus 1", "runs 0 7 -1")
    (gpu,), _fault = look().at(0)
    assert (gpu["memory_own_bytes"], gpu["memory_others_bytes"], gpu["processes"]) == (None, None, 1)
    assert "what each process holds" in gpu["unknown"]["memory_own_bytes"]


def test_errors_that_the_driver_reports_are_kept_for_their_gpu(machine: Machine, look: Any) -> None:
    machine.is_now("gpus 3", "mig 2 2")
    process = look("GPU-1", "MIG-2-0")
    process.at(0)
    machine.is_now("gpus 3", "mig 2 2", "xid 1 79", "xid 0 13", "xid 2 31", "xid 1 94")
    (whole, slice_), _fault = process.at(1)
    assert (whole["xids"], slice_["xids"]) == ([79, 94], [31])
    (whole, slice_), _fault = process.at(2)
    assert (whole["xids"], slice_["xids"]) == ([79, 94], [31])


@pytest.mark.parametrize("call", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents"])
def test_a_driver_that_reports_no_errors_to_us_says_so(machine: Machine, look: Any, call: str) -> None:
    machine.is_now("gpus 1", f"answer {call} 4")
    (gpu,), _fault = look().at(0)
    assert (gpu["xids"], gpu["stale"]) == (None, None)
    assert "NVML 4" in gpu["unknown"]["xids"]


def test_a_gpu_that_is_missing_after_a_fault_is_said_to_be_missing(machine: Machine, look: Any) -> None:
    machine.is_now("gpus 2")
    process = look()
    process.at(0)
    machine.is_now("gpus 2", "answer * 9")
    (_well, gone), _fault = process.at(1)
    assert "NVML 9" in gone["stale"]
    machine.is_now("gpus 1")
    (well, gone), _fault = process.at(2 + REOPEN_FIRST_S)
    assert (well["stale"], gone["stale"]) == (None, NOT_SHOWN)


@pytest.mark.parametrize("code", [9, 12, 18, 999])
def test_without_a_driver_the_reason_is_told(machine: Machine, look: Any, code: int) -> None:
    machine.is_now(f"answer nvmlInitWithFlags {code}")
    gpus, fault = look().at(0)
    assert gpus == []
    assert f"NVML {code}" in fault


def test_without_the_library_the_reason_is_told(machine: Machine, look: Any) -> None:
    machine.loses_its_driver()
    gpus, fault = look().at(0)
    assert gpus == []
    assert "install the driver" in fault
