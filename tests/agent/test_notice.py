"""The notice path: from whoever ends the session to the kernel, and the answer back."""

from __future__ import annotations

import re
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import Call, Evict, KernelExited, KernelReady, Noticed, Role, Served, Start, Stop
from tests.agent import programs
from tests.agent.harness import RunningAgent, alive

Run = Callable[..., RunningAgent]


def test_sigterm_is_told_answered_and_ends_with_143(run_agent: Run) -> None:
    agent = run_agent(grace_s=20.0)
    server = agent.connect()
    kernel = agent.linked(server, programs.SAVES)
    began_s = time.monotonic()
    agent.terminate()

    noticed = server.wait_for(Noticed).notice
    served = server.wait_for(Served)
    assert noticed.cause is Cause.SIGTERM
    assert 19.0 < noticed.remaining_s <= 20.0
    assert served == Served(SaveOutcome.SAVED, Path("/snapshots/7"), 7, 0.1)
    assert agent.exit_code() == 143
    assert time.monotonic() - began_s < 5.0  # the grace is not waited for
    assert not alive(kernel)
    assert not [message for message in server.rest() if isinstance(message, KernelExited)]


def test_evict_carries_its_cause_and_who_takes_the_gpu_to_the_kernel(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.linked(server, programs.SAVES)
    server.send(Evict(EvictionNotice(Cause.PREEMPTED, 12.0, "job.py (urgent)", 2)))
    assert agent.exit_code() == 143
    assert "'cause': 'preempted'" in agent.output()
    assert "'by': 'job.py (urgent)', 'position': 2" in agent.output()


def test_stop_saves_first_and_ends_with_0(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.linked(server, programs.SAVES)
    server.send(Stop(save_s=10.0))
    assert server.wait_for(Noticed).notice.cause is Cause.SHUTDOWN
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert agent.exit_code() == 0


def test_stop_without_time_tells_nobody(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    kernel = agent.linked(server, programs.SAVES)
    server.send(Stop())
    assert agent.exit_code() == 0
    assert not alive(kernel)
    assert "Notice" not in agent.output()


def test_a_notice_without_time_says_so(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.linked(server, programs.SAVES)
    server.send(Evict(EvictionNotice(Cause.PREEMPTED, 0.0)))
    assert server.wait_for(Served).detail == "There was no time to save."
    assert agent.exit_code() == 143


def test_a_drill_is_played_and_nothing_ends(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    kernel = agent.linked(server, programs.SAVES)
    server.send(Evict(EvictionNotice(Cause.DRILL, 10.0)))
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert alive(kernel)
    server.send(Stop())
    assert agent.exit_code() == 0


def test_a_kernel_that_ignores_everything_is_killed_at_the_end_of_the_grace(run_agent: Run) -> None:
    agent = run_agent(grace_s=2.0)
    server = agent.connect()
    kernel = agent.linked(server, programs.IGNORES_EVERYTHING)
    agent.terminate()
    server.wait_for(Noticed)
    began_s = time.monotonic()
    while alive(kernel) and time.monotonic() < began_s + 10:
        time.sleep(0.005)
    assert 1.8 <= time.monotonic() - began_s <= 2.3
    served = server.wait_for(Served)
    assert served.outcome is SaveOutcome.FAILED
    assert "did not answer within 2.0 s" in served.detail
    assert agent.exit_code() == 143


def test_a_kernel_without_the_extension_gets_sigterm_and_the_rest_of_the_grace(run_agent: Run) -> None:
    agent = run_agent(grace_s=2.0)
    server = agent.connect()
    agent.python(server, programs.DEAF)
    agent.wait_for_output("up")
    began_s = time.monotonic()
    agent.terminate()
    served = server.wait_for(Served)
    assert 1.8 <= time.monotonic() - began_s <= 2.5
    assert served.outcome is SaveOutcome.NOTHING
    assert "extension" in served.detail
    assert agent.exit_code() == 143


def test_the_group_behind_a_shell_gets_the_signal(run_agent: Run) -> None:
    """A shell as the kernel's first process does not pass SIGTERM on [docker-stacks#275]."""
    agent = run_agent()
    server = agent.connect()
    agent.start(server, "sh", "-c", f'{shlex.quote(sys.executable)} -u -c "$0"; echo done', programs.SAVES_ON_SIGTERM)
    agent.wait_for_output("up")
    began_s = time.monotonic()
    agent.terminate()
    assert agent.exit_code() == 143
    assert time.monotonic() - began_s < 5.0
    assert "saved" in agent.output()  # though the shell had ended at once


@pytest.mark.parametrize("wrapper", ["sh -c '{python}; echo done'", "bash -c '{python} | cat'"])
def test_a_kernel_behind_a_shell_is_told_by_message_and_its_group_ended(run_agent: Run, wrapper: str) -> None:
    """The shell neither passes SIGTERM on nor ends before its child [docker-stacks#275]; the save needs neither."""
    agent = run_agent()
    server = agent.connect()
    program = agent.spec.kernel_log.with_name("kernel.py")
    program.write_text(programs.linked("print('parent', os.getppid(), os.getpid()); time.sleep(0.5); served()"))
    command = shlex.split(wrapper.format(python=f"{sys.executable} -u {program}"))
    shell = agent.start(server, *command)
    server.wait_for(KernelReady)
    agent.terminate()
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert agent.exit_code() == 143
    parent, kernel = re.findall(r"parent (\d+) (\d+)", agent.output())[0]
    assert int(parent) == shell, "the kernel runs behind the shell"
    assert not alive(int(kernel))
    assert not alive(shell)


def test_children_of_the_kernel_hear_nothing_while_it_saves(run_agent: Run) -> None:
    """DataLoader workers that get SIGTERM too would disturb the save [Paddle#46870]."""
    agent = run_agent()
    server = agent.connect()
    agent.linked(server, programs.linked("time.sleep(0.5); print('saved'); served()", programs.FORKS_A_WORKER))
    agent.terminate()
    assert agent.exit_code() == 143
    output = agent.output()
    assert output.index("saved") < output.index("worker heard")


def test_a_second_notice_only_shortens(run_agent: Run) -> None:
    agent = run_agent(grace_s=300.0)
    server = agent.connect()
    agent.linked(server, programs.SAVES_WHEN_TOLD_TWICE)
    agent.terminate()
    assert server.wait_for(Noticed).notice.remaining_s > 290
    agent.terminate()  # the same again: nothing new
    server.send(Evict(EvictionNotice(Cause.PREEMPTED, 5.0)))
    second = server.wait_for(Noticed).notice
    assert second.cause is Cause.SIGTERM  # one eviction, with its first cause
    assert second.remaining_s <= 5.0
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert agent.exit_code() == 143
    assert agent.output().count("Notice {") == 2


def test_a_kernel_that_crashes_while_it_saves_is_reported_as_a_failed_save(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.linked(server, programs.CRASHES_WHILE_SAVING)
    agent.terminate()
    served = server.wait_for(Served)
    assert served.outcome is SaveOutcome.FAILED
    assert "exit code -11" in served.detail
    assert agent.exit_code() == 143


@pytest.mark.parametrize("program", [programs.EXITS_RIGHT_AFTER_ITS_ANSWER, programs.IS_HEARD_AFTER_ITS_END])
def test_the_answer_of_a_kernel_that_exits_at_once_is_not_lost(run_agent: Run, program: str) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.linked(server, program)
    agent.terminate()
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert agent.exit_code() == 143


def test_sigterm_before_any_kernel_was_started(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.connect(Role.KERNEL).send(Call(1, "status"))
    server.wait_for(Call)  # the agent knows this server
    agent.terminate()
    served = server.wait_for(Served)
    assert (served.outcome, served.detail) == (SaveOutcome.NOTHING, "No kernel was running.")
    assert agent.exit_code() == 143
    assert not agent.spec.socket.exists()


def test_a_notice_while_the_kernel_is_starting(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    kernel = agent.python(server, programs.SLEEP)  # no output is waited for: it may not even run Python yet
    agent.terminate()
    assert agent.exit_code() == 143
    assert not alive(kernel)


def test_no_restart_during_a_notice(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.linked(server, programs.linked("time.sleep(0.5); served()"))
    agent.terminate()
    server.wait_for(Noticed)
    server.send(Start(("sleep", "600"), str(agent.spec.kernel_log.parent)))
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert agent.exit_code() == 143
    assert server.rest() == []


def test_a_notice_during_a_restart(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.python(server, programs.DEAF)
    agent.wait_for_output("up")
    server.send(Start(("sleep", "600"), str(agent.spec.kernel_log.parent)))
    server.send(Evict(EvictionNotice(Cause.PREEMPTED, 20.0)))
    assert server.wait_for(Served).detail == "No kernel was running."
    assert agent.exit_code() == 143


def test_a_kernel_that_becomes_ready_during_the_notice_is_told(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.python(server, programs.linked("served()", programs.DEAF_UNTIL_A_FILE_GO))
    agent.wait_for_output("deaf")
    agent.terminate()
    server.wait_for(Noticed)
    agent.spec.kernel_log.with_name("go").touch()
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert agent.exit_code() == 143


def test_without_a_server_for_longer_than_its_lease_the_kernel_saves_and_ends(run_agent: Run) -> None:
    agent = run_agent(lease_s=0.5)
    server = agent.connect()
    agent.linked(server, programs.SAVES)
    observer = agent.connect(Role.OBSERVER)
    server.close()
    assert observer.wait_for(Noticed).notice.cause is Cause.SERVER_GONE
    assert observer.wait_for(Served).outcome is SaveOutcome.SAVED
    assert agent.exit_code() == 143


def test_a_server_that_comes_back_within_the_lease_finds_its_kernel(run_agent: Run) -> None:
    agent = run_agent(lease_s=1.0)
    server = agent.connect()
    kernel = agent.linked(server, programs.SAVES)
    server.close()
    again = agent.connect()
    time.sleep(1.3)  # the lease would have ended
    assert alive(kernel)
    again.send(Stop())
    assert agent.exit_code() == 0


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_agent_in_a_terminal_saves_on_both_signals(run_agent: Run, signum: signal.Signals) -> None:
    agent = run_agent()
    server = agent.connect()
    agent.linked(server, programs.SAVES)
    agent.process.send_signal(signum)
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert agent.exit_code() == 143
