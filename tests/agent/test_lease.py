"""The agent and the machine's book of leases: a real book, real claims, real flocks."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import Change, Noticed, Served, Start
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import Ticket
from tests.agent import programs
from tests.agent.harness import RunningAgent, alive, eventually, make_spec

GRACE_S = 30.0


@dataclass
class Held:
    """An agent that holds the one device of a book."""

    book: Book
    agent: RunningAgent

    def urgent(self) -> Ticket:
        return Ticket.file(self.book, GpuRequest(gpus=1, tier="urgent"), "job.py")


@pytest.fixture
def held(directory: Path) -> Iterator[Held]:
    place = directory / "book"
    place.mkdir()
    (place / "machine.json").write_text('{"gpus": ["0"]}')
    book = Book(place)
    request = GpuRequest(gpus=1, grace_s=GRACE_S)
    ticket = Ticket.file(book, request, "notebook.ipynb")
    devices = ticket.wait(timeout_s=10)
    spec = make_spec(directory, request=request, devices=devices, book=place, claim=ticket.claim_id, claim_fd=ticket.fd)
    agent = RunningAgent(spec, pass_fds=[ticket.fd])
    agent.connect()
    os.close(ticket.fd)  # the agent's alone from here
    yield Held(book, agent)
    agent.close()


def test_an_urgent_request_reaches_the_kernel_and_gets_the_gpu_at_once(held: Held) -> None:
    server = held.agent.connect()
    held.agent.linked(server, programs.SAVES)
    urgent = held.urgent()
    assert not urgent.poll()  # names us as the one to give way
    began_s = time.monotonic()
    notice = server.wait_for(Noticed).notice
    assert notice.cause is Cause.PREEMPTED
    assert "job.py (urgent)" in notice.by
    assert notice.position == 1
    assert GRACE_S - 1 < notice.remaining_s <= GRACE_S
    assert server.wait_for(Served).outcome is SaveOutcome.SAVED
    assert [device.id for device in urgent.wait(timeout_s=10)] == ["0"]
    assert time.monotonic() - began_s < 3.0
    assert held.agent.exit_code() == 143
    urgent.release()


def test_the_lease_ends_with_a_killed_agent_and_not_before_its_kernel(held: Held) -> None:
    """Behind a shell nothing but the keeper ends the kernel: the lock is free when it is dead."""
    server = held.agent.connect()
    python = (sys.executable, "-u", "-c", programs.PRINTS_ITS_PID)
    held.agent.start(server, "sh", "-c", '"$@"; true', "sh", *python)
    eventually(lambda: held.agent.output().strip().isdigit(), "the kernel's pid")
    kernel = int(held.agent.output())
    claim = next(held.book.directory.glob(f"{held.agent.spec.claim}*"))
    with claim.open("rb") as file:
        held.agent.process.kill()
        fcntl.flock(file, fcntl.LOCK_SH)  # returns when nobody holds the lease any more
        # A process that is being killed lets its files go a moment before it counts as dead.
        eventually(lambda: not alive(kernel), "the kernel's end", within_s=0.5)
    eventually(lambda: held.book.claims() == [], "the book is empty")


def test_a_kernel_cannot_keep_the_lease(held: Held) -> None:
    """The descriptor of the lease must not reach the kernel: what it starts might outlive everything."""
    server = held.agent.connect()
    held.agent.python(server, "import os; print(sorted(os.listdir('/proc/self/fd'))); print('listed')")
    held.agent.wait_for_output("listed")
    assert "['0', '1', '2', '3']" in held.agent.output()


def test_a_changed_request_is_in_the_book_and_in_the_next_notice(held: Held) -> None:
    server = held.agent.connect()
    held.agent.linked(server, programs.SAVES)
    server.send(Change(GpuRequest(gpus=1, tier="batch", grace_s=45.0)))
    eventually(lambda: [claim.tier for claim in held.book.claims()] == ["batch"], "the new tier")
    held.agent.terminate()
    assert 44.0 < server.wait_for(Noticed).notice.remaining_s <= 45.0
    assert held.agent.exit_code() == 143


def test_a_tier_that_does_not_exist_changes_nothing(held: Held) -> None:
    server = held.agent.connect()
    server.send(Change(GpuRequest(gpus=1, tier="imperial")))
    eventually(lambda: "imperial" in held.agent.log.read_text(), "the refusal in the log")
    assert [claim.tier for claim in held.book.claims()] == ["notebook"]


def test_a_restart_in_place_keeps_the_lease(held: Held) -> None:
    server = held.agent.connect()
    held.agent.python(server, programs.SLEEP)
    urgent_later = Ticket.file(held.book, GpuRequest(gpus=1), "second.ipynb")
    server.send(Start((sys.executable, "-c", programs.SLEEP), str(held.agent.spec.kernel_log.parent)))
    held.agent.wait_for_output("up")
    assert not urgent_later.poll()
    urgent_later.release()
