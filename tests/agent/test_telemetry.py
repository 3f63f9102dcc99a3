"""What an agent sees of its devices and host, and tells while somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.telemetry import KernelSample
from jupyter_paddle_gpu.core.wire import KernelExited, KernelSeen, Ready, Role, Seen, Stop, Watch
from tests.agent import programs
from tests.agent.harness import Connection, RunningAgent
from tests.telemetry import driver

Run = Callable[..., RunningAgent]


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> driver.Machine:
    """Four GPUs for the agents of this test."""
    return driver.play(tmp_path, monkeypatch, "gpus 4")


def seen_until(server: Connection, fits: Callable[[Seen], bool]) -> Seen:
    """Return the first that fits; the harness's patience ends a wait for nothing."""
    while not fits(seen := server.wait_for(Seen)):
        pass
    return seen


def test_an_agent_sees_its_own_devices(gpus: driver.Machine, run_agent: Run) -> None:
    server = run_agent(devices=(Device("GPU-2"),)).connect()
    server.send(Watch(0.05))
    reading = server.wait_for(Seen).reading
    assert [gpu.id for gpu in reading.gpus] == ["GPU-2"]
    assert reading.host.memory_used_bytes is not None
    seen_until(server, lambda seen: seen.reading.host.cpu_percent is not None)


def test_a_cpu_session_sees_its_host(gpus: driver.Machine, run_agent: Run) -> None:
    server = run_agent().connect()
    server.send(Watch(0.05))
    reading = server.wait_for(Seen).reading
    assert (reading.gpus, reading.fault) == ((), None)


def test_nothing_is_told_when_nobody_looks(gpus: driver.Machine, run_agent: Run) -> None:
    server = run_agent(devices=(Device("GPU-0"),)).connect()
    server.send(Stop())
    assert [message for message in server.rest() if isinstance(message, Seen)] == []


def test_a_lost_gpu_is_told_and_the_kernel_lives(gpus: driver.Machine, run_agent: Run) -> None:
    agent = run_agent(devices=(Device("GPU-0"),))
    server = agent.connect()
    agent.python(server, "import time; time.sleep(600)")
    server.send(Watch(0.05))
    server.wait_for(Seen)
    gpus.is_now("gpus 4", "answer * 15")
    lost = seen_until(server, lambda seen: seen.reading.gpus[0].stale is not None)
    assert "lost" in str(lost.reading.gpus[0].stale)
    gpus.is_now("gpus 4")
    seen_until(server, lambda seen: seen.reading.gpus[0].stale is None)
    server.send(Stop())
    assert [message for message in server.rest() if isinstance(message, KernelExited)] == []


def test_the_kernel_is_told_who_looks_and_its_word_is_passed_on(gpus: driver.Machine, run_agent: Run) -> None:
    agent = run_agent()
    server, kernel = agent.connect(), agent.connect(Role.KERNEL)
    agent.python(server, programs.SLEEP)
    server.send(Watch(0.05))
    assert server.wait_for(Seen).reading.kernel is None
    kernel.send(Ready())
    assert kernel.wait_for(Watch) == Watch(0.05)
    sample = KernelSample(1.0, step=7)
    kernel.send(KernelSeen(sample))
    assert server.wait_for(KernelSeen) == KernelSeen(sample)
    assert seen_until(server, lambda seen: seen.reading.kernel is not None).reading.kernel == sample
    server.send(Watch(0))
    assert kernel.wait_for(Watch) == Watch(0)
    agent.python(server, programs.SLEEP)
    server.send(Watch(0.05))
    seen_until(server, lambda seen: seen.reading.kernel is None)  # another kernel has said nothing yet


def test_a_driver_that_hangs_holds_nobody_up(gpus: driver.Machine, run_agent: Run) -> None:
    gpus.is_now("gpus 4", "slow nvmlInitWithFlags 600000")
    agent = run_agent(devices=(Device("GPU-0"),))
    server = agent.connect()
    server.send(Watch(0.05))
    agent.python(server, "print('works'); import time; time.sleep(600)")
    agent.wait_for_output("works")
    server.send(Stop())
    assert agent.exit_code() == 0


def test_a_kernel_and_its_server_look_each_at_its_own_pace(gpus: driver.Machine, run_agent: Run) -> None:
    agent = run_agent(devices=(Device("GPU-1"),))
    server, kernel = agent.connect(), agent.connect(Role.KERNEL)
    server.send(Watch(600))
    server.wait_for(Seen)
    kernel.send(Watch(0.05))
    readings = [kernel.wait_for(Seen).reading for _ in range(5)]
    assert [gpu.id for gpu in readings[0].gpus] == ["GPU-1"]
    kernel.send(Watch(0))
    server.send(Stop())
    assert [message for message in server.rest() if isinstance(message, Seen)] == []


def test_a_kernel_that_goes_looks_no_more(gpus: driver.Machine, run_agent: Run) -> None:
    agent = run_agent()
    server, kernel = agent.connect(), agent.connect(Role.KERNEL)
    kernel.send(Watch(0.05))
    kernel.wait_for(Seen)
    kernel.close()
    server.send(Watch(0.05))
    assert server.wait_for(Seen).reading.gpus == ()
