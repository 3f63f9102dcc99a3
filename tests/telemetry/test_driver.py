"""The devices that a process finds through the real nvidia-ml-py and a driver library in C."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.telemetry.driver import Machine

_PROGRAM = """
import json
from jupyter_paddle_gpu.telemetry import nvml
print(json.dumps([[device.id, device.kind.value, device.name, device.memory_bytes] for device in nvml.discover()]))
"""


def devices_of(machine: Machine) -> list[list[object]]:
    environment = os.environ | machine.environment
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, check=True, capture_output=True, text=True)
    devices: list[list[object]] = json.loads(done.stdout)
    return devices


@pytest.mark.parametrize("count", [1, 8, 64])
def test_every_gpu_is_found(machine: Machine, count: int) -> None:
    machine.is_now(f"gpus {count}")
    assert [device[0] for device in devices_of(machine)] == [f"GPU-{index}" for index in range(count)]


def test_a_divided_gpu_is_its_slices(machine: Machine) -> None:
    machine.is_now("gpus 2", "mig 0 2")
    assert [(device[0], device[1]) for device in devices_of(machine)] == [
        ("MIG-0-0", "MIG"), ("MIG-0-1", "MIG"), ("GPU-1", "GPU")
    ]  # fmt: skip


def test_slices_are_found_where_the_driver_does_not_say_that_the_gpu_is_divided(machine: Machine) -> None:
    machine.is_now("gpus 2", "mig 0 1", "answer nvmlDeviceGetMigMode 4")
    assert [(device[0], device[1]) for device in devices_of(machine)] == [("MIG-0-0", "MIG"), ("GPU-1", "GPU")]


def test_a_gpu_that_is_lost_is_left_out(machine: Machine) -> None:
    machine.is_now("gpus 2", "answer nvmlDeviceGetHandleByIndex_v2@0 15")
    assert [device[0] for device in devices_of(machine)] == ["GPU-1"]


def test_a_machine_without_a_driver_has_none(machine: Machine) -> None:
    machine.loses_its_driver()
    assert devices_of(machine) == []
