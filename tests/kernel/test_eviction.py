"""The running cell ends with Evicted on the client's side, wherever the main thread is."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import EXIT_EVICTED, Served
from tests.kernel.kernels import AgentEnd, Notebook, notebook

PLACES = {
    "a sleep": "import time; print('here', flush=True); time.sleep(600)",
    "a pure Python loop": "print('here', flush=True)\nwhile True: pass",
    "one long C call": "print('here', flush=True); import hashlib; hashlib.pbkdf2_hmac('sha512', b'x', b'y', 10**9)",
    "an asyncio await": "import asyncio; print('here', flush=True); await asyncio.sleep(600)",
    "a lock": "import threading; print('here', flush=True); l = threading.Lock()\nwhile True: l.acquire()",
    "a swallowing loop": "print('here', flush=True)\nwhile True:\n    try: 1 / 0\n    except BaseException: pass",
}


@pytest.mark.parametrize("code", PLACES.values(), ids=PLACES.keys())
def test_the_running_cell_ends_with_evicted(evictable: Notebook, agent: AgentEnd, code: str) -> None:
    evictable.good("from jupyter_paddle_gpu import guard; guard.keep(best=0.5)")
    running = evictable.begin(code, allow_stdin=False)
    evictable.read(lambda: "here" in running.text)
    queued = [evictable.begin("print('never')"), evictable.begin("print('nor this')")]
    agent.notice()
    evictable.end(running, *queued)
    assert running.error == "Evicted: kept values saved, waiting for a GPU, position 2"
    assert [reply["status"] for cell in (running, *queued) for reply in cell.replies] == ["error"] * 3
    assert all(cell.replies[0]["ename"] == "Evicted" and "never" not in cell.text for cell in queued)
    assert agent.wait(Served).outcome is SaveOutcome.SAVED
    assert evictable.exit_code() == EXIT_EVICTED


def test_a_cell_that_waits_for_input_ends_too(evictable: Notebook, agent: AgentEnd) -> None:
    running = evictable.begin("print('here', flush=True); input('name? ')", allow_stdin=True)
    assert evictable.client.stdin_channel.get_msg(timeout=30)["content"]["prompt"] == "name? "
    agent.notice(position=None)
    evictable.end(running)
    assert running.error == "Evicted: nothing to save, waiting for a GPU"
    assert evictable.exit_code() == EXIT_EVICTED


def test_the_text_says_where_the_cell_was(evictable: Notebook, agent: AgentEnd) -> None:
    running = evictable.begin("import time\n\ndef work():\n    time.sleep(600)  # here\n\nprint('here')\nwork()")
    evictable.read(lambda: "here" in running.text)
    agent.notice()
    evictable.end(running)
    assert running.errors[0]["traceback"] == [
        "the cell was at line 7: work()",
        "the cell was at line 4: time.sleep(600)  # here",
        "Evicted: nothing to save, waiting for a GPU, position 2",
    ]


def test_a_cell_that_has_just_been_answered_is_idle_too(evictable: Notebook, agent: AgentEnd) -> None:
    """Clients such as nbclient wait for "idle"; the main thread may be late to say so, and the process gone before."""
    slow = evictable.begin("import time; get_ipython().kernel.post_handler_hook = lambda: time.sleep(600)")
    evictable.read(lambda: bool(slow.replies))
    agent.notice()
    evictable.end(slow)
    assert [reply["status"] for reply in slow.replies] == ["ok"]
    assert evictable.exit_code() == EXIT_EVICTED


def test_what_was_printed_before_arrives_before_the_end(evictable: Notebook, agent: AgentEnd) -> None:
    running = evictable.begin("import sys, time\nfor i in range(9999): sys.stdout.write('x')\ntime.sleep(600)")
    evictable.read(lambda: "x" in running.text)
    agent.notice()
    evictable.end(running)
    assert running.text == "x" * 9999


def test_other_requests_of_a_busy_kernel_are_answered_as_well(evictable: Notebook, agent: AgentEnd) -> None:
    running = evictable.begin("print('here', flush=True); import time; time.sleep(600)")
    evictable.read(lambda: "here" in running.text)
    asked = evictable.client.complete("pri")
    agent.notice()
    replies = [evictable.client.get_shell_msg(timeout=30) for _ in range(2)]
    by_parent = {reply["parent_header"]["msg_id"]: reply for reply in replies}
    assert by_parent[asked]["msg_type"] == "complete_reply"
    assert by_parent[asked]["content"]["ename"] == "Evicted"


@pytest.mark.parametrize("first", ["%load_ext jupyter_paddle_gpu", "await __import__('asyncio').sleep(0.2)"])
def test_cells_queued_before_the_extension_was_loaded_are_answered(place: Path, agent: AgentEnd, first: str) -> None:
    with notebook(place, agent, module="ipykernel_launcher", ready=False) as opened:
        cells = [opened.begin(first), opened.begin("%load_ext jupyter_paddle_gpu\nprint('loaded')")]
        running = opened.begin("print('here', flush=True); import time; time.sleep(600)")
        queued = opened.begin("print('never')")
        opened.read(lambda: "here" in running.text)
        agent.notice()
        opened.end(*cells, running, queued, timeout_s=10)
        assert running.error.startswith("Evicted: nothing to save")
        assert queued.replies[0]["ename"] == "Evicted"


def test_a_shorter_second_notice_does_not_save_twice(evictable: Notebook, agent: AgentEnd) -> None:
    evictable.good("from jupyter_paddle_gpu import guard; guard.keep(best=0.5)")
    running = evictable.begin("print('here', flush=True); import time; time.sleep(600)")
    evictable.read(lambda: "here" in running.text)
    agent.notice(remaining_s=60.0)
    agent.notice(remaining_s=10.0)
    os.kill(evictable.pid, signal.SIGTERM)
    evictable.end(running)
    assert len(running.errors) == len(running.replies) == 1
    served = agent.wait(Served)
    assert evictable.exit_code() == EXIT_EVICTED
    assert served.snapshot is not None
    assert len([path for path in served.snapshot.parent.iterdir() if path.is_dir()]) == 1
    assert not any(isinstance(message, Served) for message in agent.heard.queue)
