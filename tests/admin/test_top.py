"""``jupyter paddle-gpu top`` as people and pipes see it: a real terminal, real servers, a driver in C."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server.conftest import Machine, eventually
from tests.server.conftest import machine as machine
from tests.server.conftest import runtime as runtime
from tests.server.jupyter import JupyterServer
from tests.telemetry import driver

KEEP = "%load_ext jupyter_paddle_gpu\nfrom jupyter_paddle_gpu import guard\nx = 1\nguard.keep(x=x)"
TOP = [sys.executable, "-m", "jupyter_paddle_gpu.admin.app", "top"]


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> driver.Machine:
    return driver.play(tmp_path, monkeypatch)


def once() -> str:
    done = subprocess.run([*TOP, "--once"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout, "colours are for terminals"
    return done.stdout


def line_of(text: str, what: str) -> str:
    (found,) = (line for line in text.splitlines() if what in line)
    return found


def test_each_gpu_has_a_line_with_its_holder(machine: Machine, gpus: driver.Machine) -> None:
    (machine.book / "machine.json").write_text('{"gpus": ["GPU-0", "GPU-1", "GPU-2"]}')
    throttled = "value nvmlDeviceGetCurrentClocksEventReasons@1 4"
    gpus.is_now("gpus 3", "value nvmlDeviceGetUtilizationRates@1 97", throttled)
    ticket = machine.file()
    assert [device.id for device in ticket.wait(timeout_s=20)] == ["GPU-0"]
    waits = machine.file("notebook")
    told = once()
    assert told.startswith("2 of 3 GPUs free   CPU ")
    assert "holds  urgent" in line_of(told, "0 Stand-in")
    assert "urgent job" in line_of(told, "0 Stand-in")
    for part in ("97 %", "2.0 GiB of 80 GiB", "40 °C !", "300 W", "free"):
        assert part in line_of(told, "1 Stand-in")
    assert "GPU 1 is slowed down: power limit" in told
    assert "notebook job" in line_of(told, "Needs 1 GPU")
    for one in (ticket, waits):
        one.release()


def test_a_lost_gpu_shows_dashes_and_the_reason(machine: Machine, gpus: driver.Machine) -> None:
    (machine.book / "machine.json").write_text('{"gpus": ["GPU-0", "GPU-1"]}')
    gpus.is_now("gpus 2", "answer nvmlDeviceGetHandleByIndex_v2@1 15")
    told = once()
    assert "2 of 2 GPUs free" in told
    assert "GPU 1 shows old values: the GPU is lost" in told
    assert line_of(told, "1 1").count("–") == 5


def test_without_a_driver_the_reason_is_told(machine: Machine, gpus: driver.Machine) -> None:
    gpus.loses_its_driver()
    told = once()
    assert "GPUs are not seen: NVIDIA's driver library is not here" in told
    assert "free" in line_of(told, "0  ")


def test_a_machine_without_a_gpu_has_its_slot(machine: Machine, gpus: driver.Machine) -> None:
    gpus.loses_its_driver()
    (machine.book / "machine.json").unlink()
    told = once()
    assert told.startswith("1 of 1 CPU slot free")
    assert "not seen" not in told


@pytest.fixture
def server(machine: Machine) -> Iterator[JupyterServer]:
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "5s"})
    server = JupyterServer(machine.root, "server")
    yield server
    server.stop()


def test_kernels_of_running_servers_tell_how_far_they_are(server: JupyterServer, machine: Machine) -> None:
    kernel = server.open("a.ipynb", "gpu")["kernel"]["id"]
    eventually(lambda: server.state(kernel) == "running")
    asyncio.run(server.run(kernel, KEEP))
    server.ask("POST", f"paddle-gpu/sessions/{kernel}/save")
    told = line_of(once(), "  running  ")
    for part in ("a.ipynb", "values, ", " ago", " of 5.0 s"):
        assert part in told
    server.kill()
    assert "A Jupyter server is left out" not in once(), "it is known to be no more"


def test_in_a_terminal_it_moves_until_it_is_interrupted(machine: Machine) -> None:
    master, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    command = [*TOP, "--every", "0.2"]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        shown = b""
        while shown.count(b"1 of 1 GPU free") < 3:
            shown += os.read(master, 4096)
        assert b"\x1b" in shown
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # the terminal has no other end any more
            while os.read(master, 4096):
                pass
    os.close(master)
    assert process.returncode == 130


def test_too_short_a_period_is_refused(machine: Machine) -> None:
    done = subprocess.run([*TOP, "--every", "0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "Take 0.2 or more" in done.stderr


def test_an_unknown_option_gets_the_options_that_there_are() -> None:
    done = subprocess.run([*TOP, "--interval", "2"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "unrecognized arguments: --interval 2" in done.stderr
    assert "--every SECONDS" in done.stderr
