"""The line to the agent: notices come in, calls are answered or refused, nobody hangs when the agent goes."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.errors import AgentUnreachable, PaddleGpuError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.wire import Answer, Call, Hello, Message, Ready, Role, Watch
from jupyter_paddle_gpu.kernel.link import Link
from tests.kernel.kernels import AgentEnd


@pytest.fixture
def notices() -> queue.Queue[EvictionNotice]:
    return queue.Queue()


@pytest.fixture
def asked() -> queue.Queue[Message]:
    return queue.Queue()


@pytest.fixture
def link(agent: AgentEnd, notices: queue.Queue[EvictionNotice], asked: queue.Queue[Message]) -> Iterator[Link]:
    link = Link(agent.path, notices.put, asked.put)
    link.connect()
    assert agent.wait(Hello) == Hello(Role.KERNEL, os.getpid())
    yield link
    link.close()


def test_a_notice_is_heard(link: Link, agent: AgentEnd, notices: queue.Queue[EvictionNotice]) -> None:
    link.ready()
    agent.wait(Ready)
    agent.notice(Cause.PREEMPTED, 12.0, position=3)
    assert notices.get(timeout=10) == EvictionNotice(Cause.PREEMPTED, 12.0, position=3)


def test_a_message_that_is_not_understood_is_passed_over(
    link: Link, agent: AgentEnd, notices: queue.Queue[EvictionNotice]
) -> None:
    agent.send_raw(b'{"kind": "Nonsense"}\nnot json\n\n')
    agent.notice(Cause.RELEASED)
    assert notices.get(timeout=10).cause is Cause.RELEASED


def answering(agent: AgentEnd, **answer: object) -> threading.Thread:
    def serve() -> None:
        agent.send(Answer(agent.wait(Call).id, **answer))  # type: ignore[arg-type]  # the fields of an Answer

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_a_call_returns_the_servers_result(link: Link, agent: AgentEnd) -> None:
    thread = answering(agent, result={"state": "running"})
    assert link.call("status") == {"state": "running"}
    thread.join()


def test_a_refusal_carries_fault_and_next_step(link: Link, agent: AgentEnd) -> None:
    thread = answering(agent, error="There is no tier 'x'", next_step="Choose another.")
    with pytest.raises(PaddleGpuError) as refused:
        link.call("request", {"tier": "x"})
    thread.join()
    assert (refused.value.fault, refused.value.next_step) == ("There is no tier 'x'", "Choose another.")


def test_what_the_session_asks_is_passed_on(link: Link, agent: AgentEnd, asked: queue.Queue[Message]) -> None:
    for message in (Call(7, "save"), Watch(1.0)):
        agent.send(message)
        assert asked.get(timeout=10) == message
    link.tell(Answer(7, "saved"))
    assert agent.wait(Answer) == Answer(7, "saved")


def test_a_call_that_nobody_answers_ends(link: Link) -> None:
    with pytest.raises(AgentUnreachable, match=r"within 0\.05 s"):
        link.call("status", timeout_s=0.05)


def test_a_call_ends_when_the_agent_goes(link: Link, agent: AgentEnd) -> None:
    def leave() -> None:
        agent.wait(Call)
        agent.hang_up()

    threading.Thread(target=leave).start()
    with pytest.raises(AgentUnreachable, match="agent has gone"):
        link.call("status")
    with pytest.raises(AgentUnreachable):
        link.call("status")
    link.cell(None)  # a hint: nobody minds


def test_an_agent_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgentUnreachable, match=r"gone\.sock does not answer: No such file"):
        Link(tmp_path / "gone.sock", print, print).connect()


def test_a_forked_child_says_nothing(link: Link, agent: AgentEnd) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            link.call("status", timeout_s=5)
        except AgentUnreachable:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    link.ready()
    assert isinstance(agent.heard.get(timeout=10), Ready)
