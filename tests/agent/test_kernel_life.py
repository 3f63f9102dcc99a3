"""One kernel after the other in the same agent: start, restart in place, unasked ends, and nothing left of it."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable

import pytest

from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.wire import Interrupt, KernelExited, KernelReady, KernelStarted, Role, Start, Stop
from tests.agent import programs
from tests.agent.harness import RunningAgent, alive, eventually

Run = Callable[..., RunningAgent]


def pids_in(agent: RunningAgent) -> list[int]:
    return [int(word) for word in agent.output().split() if word.isdigit()]


def test_a_kernel_that_dies_at_start_is_reported_with_its_last_lines(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.python(server, "print('importing'); import no_such_module_anywhere")
    exited = server.wait_for(KernelExited)
    assert exited.exit_code == 1
    assert exited.log_tail.startswith("importing\nTraceback")
    assert "ModuleNotFoundError: No module named 'no_such_module_anywhere'" in exited.log_tail
    assert agent.process.poll() is None  # it keeps the devices for the next try


def test_a_killed_kernel_is_reported_with_its_signal(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    os.kill(agent.python(server, programs.SLEEP), signal.SIGKILL)
    assert server.wait_for(KernelExited).exit_code == -9


@pytest.mark.parametrize(
    ("command", "cwd", "words"),
    [
        (("no-such-command-anywhere",), ".", "No such file or directory"),
        (("/",), ".", "Permission denied"),
        ((), ".", "cannot be run"),
        (("a\0b",), ".", "null byte"),
        (("true",), "gone", "does not exist"),
    ],
)
def test_a_command_that_cannot_be_run_says_so(run_agent: Run, command: tuple[str, ...], cwd: str, words: str) -> None:
    agent = run_agent()
    server = agent.connect()
    server.send(Start(command, str(agent.spec.kernel_log.parent / cwd)))
    exited = server.wait_for(KernelExited)
    assert exited.exit_code == 126
    assert words in exited.log_tail
    agent.python(server, programs.SLEEP)  # the next one is started all the same


def test_restart_in_place_keeps_the_agent_and_ends_the_process_with_its_children(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    first = agent.python(server, programs.LEAVES_ORPHANS)
    eventually(lambda: len(pids_in(agent)) == 3, "the children's pids")
    second = agent.python(server, programs.SLEEP)
    assert second != first
    assert not any(map(alive, [first, *pids_in(agent)]))
    assert alive(second)


def test_orphans_end_with_a_kernel_that_ends_by_itself(run_agent: Run) -> None:
    """Its data-loading workers, and even what called setsid: they would hold the memory of the GPU."""
    agent = run_agent()
    server = agent.connect()
    kernel = agent.python(server, programs.LEAVES_ORPHANS)
    eventually(lambda: len(pids_in(agent)) == 3, "the children's pids")
    os.kill(kernel, signal.SIGKILL)
    assert server.wait_for(KernelExited).exit_code == -9
    assert not any(map(alive, pids_in(agent)))


def test_many_restarts_one_after_the_other_leave_the_last(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    for _ in range(5):
        server.send(Start((sys.executable, "-c", programs.SLEEP), str(agent.spec.kernel_log.parent)))
    pids = [server.wait_for(KernelStarted).pid for _ in range(5)]
    assert [alive(pid) for pid in pids] == [False] * 4 + [True]


def test_a_start_that_is_not_to_be_one_again_leaves_the_kernel_there_is(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    kernel = agent.python(server, programs.SLEEP, again=False)
    cwd = str(agent.spec.kernel_log.parent)
    server.send(Start((sys.executable, "-c", programs.SLEEP), cwd, again=False))
    server.send(Start(("no-such-command-anywhere",), cwd, again=False))
    os.kill(kernel, signal.SIGKILL)
    assert server.wait_for(KernelExited).exit_code == -9


def test_interrupt_reaches_the_whole_group(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.start(server, "sh", "-c", f'"{sys.executable}" -u -c "$0"', programs.SAYS_INTERRUPTED)
    agent.wait_for_output("up")
    server.send(Interrupt())
    agent.wait_for_output("interrupted")


def test_a_signal_that_does_not_exist_harms_nobody(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    kernel = agent.python(server, programs.SLEEP)
    for signum in (-1, 0, 4711):
        server.send(Interrupt(signum))
    server.send(Interrupt(signal.SIGKILL))
    assert server.wait_for(KernelExited).exit_code == -9
    assert not alive(kernel)


def test_the_kernels_environment(run_agent: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    agent = run_agent(devices=(Device("2"), Device("MIG-abc")))
    server = agent.connect()
    agent.python(server, programs.PRINTS_ENVIRONMENT, env={"MINE": "yes"})
    agent.wait_for_output("MINE=yes")
    output = agent.output()
    assert "CUDA_VISIBLE_DEVICES=2,MIG-abc\n" in output
    assert "PADDLE_GPU_SESSION=session-1\n" in output
    assert f"PADDLE_GPU_AGENT={agent.spec.socket}\n" in output
    assert f"JPY_PARENT_PID={agent.process.pid}\n" in output


def test_without_devices_the_kernel_sees_what_a_plain_one_sees(run_agent: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    agent = run_agent()
    server = agent.connect()
    agent.python(server, programs.PRINTS_ENVIRONMENT)
    agent.wait_for_output("CUDA_VISIBLE_DEVICES=7\n")


@pytest.mark.parametrize("behind_a_shell", [False, True])
def test_a_killed_agent_takes_its_kernel_along(run_agent: Run, behind_a_shell: bool) -> None:
    agent = run_agent()
    server = agent.connect()
    python = (sys.executable, "-u", "-c", programs.PRINTS_ITS_PID)
    command = ("sh", "-c", '"$@"; true', "sh", *python) if behind_a_shell else python
    agent.start(server, *command)
    eventually(lambda: len(pids_in(agent)) == 1, "the kernel's pid")
    kernel = pids_in(agent)[0]
    agent.process.kill()
    agent.exit_code()
    eventually(lambda: not alive(kernel), "the kernel has ended", 5.0)


def test_a_late_server_is_told_where_things_stand(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    kernel = agent.linked(server, programs.SAVES)
    late = agent.connect()
    assert [late.receive(), late.receive()] == [KernelStarted(kernel), KernelReady()]
    os.kill(kernel, signal.SIGKILL)
    assert late.wait_for(KernelExited).exit_code == -9
    observer = agent.connect(Role.OBSERVER)
    assert observer.receive() == KernelStarted(kernel)
    assert observer.wait_for(KernelExited).exit_code == -9


def test_the_kernels_output_is_private(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.python(server, programs.SLEEP)
    agent.wait_for_output("up")
    assert stat.S_IMODE(agent.spec.kernel_log.stat().st_mode) == 0o600


def test_a_kernel_whose_output_cannot_be_written_runs_all_the_same(run_agent: Run) -> None:
    agent = run_agent()
    agent.spec.kernel_log.mkdir()
    server = agent.connect()
    agent.python(server, "print('x' * 300_000); print('last line'); raise SystemExit(3)")
    exited = server.wait_for(KernelExited)
    assert exited.exit_code == 3
    assert exited.log_tail.endswith("last line\n")
    server.send(Stop())
    assert agent.exit_code() == 0
