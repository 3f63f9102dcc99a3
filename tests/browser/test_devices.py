"""What the cards of GPUs and slices say of what is wrong, not known, or somebody else's."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab, says
from tests.server.conftest import Machine
from tests.telemetry import driver


def declare(machine: Machine, *devices: object) -> None:
    """Let the machine lend these."""
    (machine.book / "machine.json").write_text(json.dumps({"gpus": devices}))


def test_a_slice_shows_its_memory_and_why_it_shows_no_utilization(
    lab: Lab, machine: Machine, gpus: driver.Machine
) -> None:
    """Others fail on a slice, or show its utilization as zero [gpustat#102, jupyterlab-nvdashboard#184]."""
    declare(machine, {"id": "MIG-0-0", "kind": "MIG", "name": "1g.10gb", "memory_bytes": 10 << 30})
    gpus.is_now("gpus 1", "mig 0 3")
    lab.open_notebook()
    card = lab.card("Devices", re.compile("MIG"))
    says(card, "Busy", "n/a", "does not tell it", "2.0 GiB of 10 GiB (20 %)")
    expect(card.get_by_text("Temperature")).to_have_count(0)
    lab.picture("mig")


def test_memory_is_shown_by_whose_it_is(lab: Lab, gpus: driver.Machine) -> None:
    """Memory kept by Paddle looked like a leak, and others' like one's own [PaddlePaddle/models#2374]."""
    kernel = lab.open_notebook()
    own = lab.run(kernel, "import os; print(os.getpid())").strip()
    gpus.is_now(
        *("gpus 1", f"value nvmlDeviceGetMemoryInfo {60 << 30}"),
        *(f"runs 0 {own} {20 << 10}", f"runs 0 1 {30 << 10}"),
    )
    card = lab.card("Devices", "GPU 0")
    says(card, "60 GiB of 80 GiB", "2 processes")
    for name, size in {"This notebook": "20 GiB", "Other tenants": "30 GiB", "Driver": "10 GiB"}.items():
        says(card.get_by_role("definition").locator(f"xpath=../../div[dt[.='{name}']]"), size)
    lab.picture("memory")


def test_faults_of_the_gpu_are_told_with_what_to_do(lab: Lab, gpus: driver.Machine) -> None:
    lab.open_notebook()
    card = lab.card("Devices", "GPU 0")
    says(card, "Busy")
    gpus.is_now(
        *("gpus 1", "xid 0 31", "xid 0 79", "value nvmlDeviceGetTotalEccErrors 2"),
        f"value nvmlDeviceGetCurrentClocksEventReasons {0x4 | 0x20}",
    )
    says(card, "Xid 31: a program", "Xid 79: this GPU has failed", "2 memory errors", "Slowed down: power limit, heat")
    lab.picture("faults")


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("unknown-error", ["gpus 1", "answer * 999"], "restart the container"),
        ("no-permission", ["gpus 1", "answer * 4"], "allows it to others only"),
        ("updated", ["gpus 1", "answer * 18"], "not reloaded"),
    ],
)
def test_a_driver_that_goes_is_told_and_found_again_and_the_kernel_lives(
    name: str, lines: list[str], said: str, lab: Lab, gpus: driver.Machine
) -> None:
    """A panel without values, or a dead one, until the page was loaded again [jupyterlab-nvdashboard#31, #33, #114]."""
    kernel = lab.open_notebook()
    devices = lab.panel.get_by_role("region", name="Devices")
    says(lab.card("Devices", "GPU 0"), "Busy")
    gpus.is_now(*lines)
    says(devices, said)
    lab.picture(name)
    assert lab.run(kernel, "print('alive')") == "alive\n"
    gpus.is_now("gpus 1")
    expect(devices).not_to_contain_text(said, timeout=60_000)
    says(lab.card("Devices", "GPU 0"), "50 %")


def test_without_a_driver_it_says_so_until_there_is_one(lab: Lab, gpus: driver.Machine) -> None:
    gpus.loses_its_driver()
    lab.open_notebook()
    devices = lab.panel.get_by_role("region", name="Devices")
    says(devices, "train.ipynb sees no GPU", "install the driver")
    lab.picture("no-driver")
    driver.build(gpus.directory)
    says(lab.card("Devices", "GPU 0"), "Busy", "50 %")
    expect(devices).not_to_contain_text("sees no GPU")


def test_a_driver_that_hangs_is_told_and_the_rest_of_the_panel_lives(lab: Lab, gpus: driver.Machine) -> None:
    kernel = lab.open_notebook()
    devices = lab.panel.get_by_role("region", name="Devices")
    says(lab.card("Devices", "GPU 0"), "Busy")
    gpus.is_now("gpus 1", "slow nvmlDeviceGetMemoryInfo 25000")
    says(devices, "Nothing has been told of the devices of train.ipynb for", "the driver hangs")
    lab.picture("stalled")
    assert lab.run(kernel, "print('alive')") == "alive\n"
    gpus.is_now("gpus 1")
    expect(devices).not_to_contain_text("Nothing has been told", timeout=60_000)


def test_sixty_four_gpus_are_a_line_each_that_opens(lab: Lab, machine: Machine, gpus: driver.Machine) -> None:
    declare(machine, *(str(index) for index in range(64)))
    gpus.is_now("gpus 64", "value nvmlDeviceGetUtilizationRates@63 97")
    machine.add_kernelspec("large", {"gpus": 64})
    lab.open_notebook(kernel="large")
    says(lab.card("Notebooks", "train.ipynb"), "GPU 0–63")
    last = lab.card("Devices", "GPU 63")
    says(last, "97 % busy, 3 % full")
    lab.picture("64-gpus")
    last.get_by_text("GPU 63").click()
    says(last, "Temperature", "Power", "Clock")
    lab.picture("64-gpus-open")


def test_a_killed_kernel_is_told_with_its_limit(lab: Lab) -> None:
    """“Kernel died” was all that people heard of the out-of-memory killer [2i2c#3427, elyra#704]."""
    kernel = lab.open_notebook()
    says(lab.card("Devices", "GPU 0"), "Busy")  # the limit is known
    os.kill(int(lab.run(kernel, "import os; print(os.getpid())")), signal.SIGKILL)
    says(lab.notification, "Out of memory, if nobody killed it: the limit is", "GiB")
    happened = lab.panel.get_by_role("region", name="What happened")
    says(happened, "was killed (SIGKILL)", "Out of memory, if nobody killed it: the limit is")
    lab.picture("out-of-memory")
    says(lab.card("Notebooks", "train.ipynb"), "Running")
