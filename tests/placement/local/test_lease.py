"""The book of leases under real processes that wait, hold and die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.errors import PlacementError, RequestError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.local import changes
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import HeldLease, Ticket

NOTEBOOK, URGENT = GpuRequest(tier="notebook", grace_s=5), GpuRequest(tier="urgent")
HOLD = """
import sys, pathlib, signal
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import Ticket
ticket = Ticket.file(Book(pathlib.Path(sys.argv[1])), GpuRequest(tier=sys.argv[2]), sys.argv[2])
print("filed", flush=True)
ticket.wait()
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def book(tmp_path: Path) -> Book:
    directory = tmp_path / "book"
    directory.mkdir()
    (directory / "machine.json").write_text(json.dumps({"gpus": ["0", "1"]}))
    return Book(directory)


class Other:
    """Another process that queues in the book."""

    def __init__(self, book: Book, tier: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(book.directory), tier], stdout=subprocess.PIPE, text=True
        )
        assert self.line() == "filed"

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture
def others() -> Iterator[list[Other]]:
    started: list[Other] = []
    yield started
    for other in started:
        other.kill()


def test_a_holder_that_is_killed_holds_nothing(book: Book, others: list[Other]) -> None:
    others += [Other(book, "notebook"), Other(book, "notebook")]
    assert {other.line() for other in others} == {"held"}
    ticket = Ticket.file(book, NOTEBOOK, "mine")
    assert not ticket.poll()
    others.pop().kill()
    assert len(ticket.wait(timeout_s=10)) == 1
    ticket.release()


def test_a_waiter_that_is_killed_leaves_the_queue(book: Book, others: list[Other]) -> None:
    holders = [Ticket.file(book, NOTEBOOK, "a"), Ticket.file(book, NOTEBOOK, "b")]
    assert all(ticket.poll() for ticket in holders)
    others.append(Other(book, "notebook"))
    behind = Ticket.file(book, NOTEBOOK, "behind")
    assert behind.position() == 2
    others.pop().kill()
    assert behind.position() == 1
    for ticket in [*holders, behind]:
        ticket.release()


def test_the_lock_passes_to_a_child_with_its_descriptor(book: Book) -> None:
    ticket = Ticket.file(book, NOTEBOOK, "kernel")
    ticket.wait()
    child = subprocess.Popen(["sleep", "60"], pass_fds=[ticket.fd])
    os.close(ticket.fd)
    assert [claim.label for claim in book.claims()] == ["kernel"]
    child.kill()
    child.wait()
    assert book.claims() == []
    assert list(book.directory.glob("*.claim")) == []


def test_an_urgent_request_takes_the_lowest_tier_s_device(book: Book) -> None:
    notebook, batch = Ticket.file(book, NOTEBOOK, "nb"), Ticket.file(book, GpuRequest(tier="batch"), "batch")
    assert notebook.poll()
    assert batch.poll()
    lease = HeldLease.attach(book.directory, notebook.claim_id, notebook.fd)
    assert lease.eviction() is None
    urgent = Ticket.file(book, URGENT, "job.py")
    assert not urgent.poll()
    notice = lease.eviction()
    assert notice is not None
    assert (notice.by, notice.remaining_s, notice.position) == ("job.py (urgent)", 5, 1)
    lease.release()
    assert urgent.poll()
    assert urgent.devices == notebook.devices
    for ticket in (batch, urgent):
        ticket.release()


def test_an_eviction_is_called_off_when_its_taker_gives_up(book: Book) -> None:
    held = [Ticket.file(book, NOTEBOOK, "a"), Ticket.file(book, NOTEBOOK, "b")]
    assert all(ticket.poll() for ticket in held)
    leases = [HeldLease.attach(book.directory, ticket.claim_id, ticket.fd) for ticket in held]
    urgent = Ticket.file(book, URGENT, "job")
    urgent.poll()
    assert sum(lease.eviction() is not None for lease in leases) == 1
    urgent.release()
    assert [lease.eviction() for lease in leases] == [None, None]
    for lease in leases:
        lease.release()


def test_a_waiter_is_woken_by_a_release(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "RECHECK_S", 600.0)  # not by looking anyway
    holder = Ticket.file(book, GpuRequest(gpus=2), "both")
    assert holder.poll()
    waiter = Ticket.file(book, NOTEBOOK, "waiter")
    granted_s: list[float] = []

    def wait() -> None:
        waiter.wait()
        granted_s.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    released_s = time.monotonic()
    holder.release()
    thread.join(10)
    assert granted_s[0] >= released_s
    assert waiter.devices
    waiter.release()


def test_a_waiting_request_is_cancelled(book: Book) -> None:
    holder = Ticket.file(book, GpuRequest(gpus=2), "both")
    holder.poll()
    waiter, cancelled = Ticket.file(book, NOTEBOOK, "waiter"), threading.Event()
    cancelled.set()
    assert waiter.wait(cancelled) == ()
    waiter.release()
    waiter.release()
    assert [claim.label for claim in book.claims()] == ["both"]
    holder.release()


def test_a_tier_is_changed_in_place_with_the_device_kept(book: Book) -> None:
    ticket = Ticket.file(book, NOTEBOOK, "nb")
    ticket.poll()
    ticket.change(GpuRequest(tier="batch", grace_s=9))
    (claim,) = book.claims()
    assert (claim.tier, claim.priority, claim.grace_s, claim.devices) == ("batch", 100_000, 9, ("0",))
    ticket.release()


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (GpuRequest(gpus=3), "3 GPUs were asked for, this machine has 2"),
        (GpuRequest(memory_bytes=2**60), "of memory were asked for"),
        (GpuRequest(tier="vip"), "vip"),
    ],
)
def test_what_can_never_be_met_is_refused_at_once(book: Book, request_: GpuRequest, named: str) -> None:
    with pytest.raises(RequestError, match=named):
        Ticket.file(book, request_, "x")
    assert book.claims() == []


def test_claims_that_are_not_ours_are_left_out(book: Book, tmp_path: Path) -> None:
    (book.directory / ("a" * 32 + ".claim")).symlink_to("/etc/passwd")
    os.mkfifo(book.directory / ("b" * 32 + ".claim"))
    (book.directory / "evil.claim").write_text("{}")
    ticket = Ticket.file(book, NOTEBOOK, "mine")
    assert [claim.label for claim in book.claims()] == ["mine"]
    ticket.release()


def test_a_file_that_claims_a_higher_priority_than_its_tier_gets_its_tier_s(book: Book) -> None:
    ticket = Ticket.file(book, NOTEBOOK, "liar")
    path = book.directory / f"{ticket.claim_id}.claim"
    path.write_text(json.dumps({**json.loads(path.read_text()), "priority": 2**31, "preempts": True}))
    (claim,) = book.claims()
    assert (claim.priority, claim.preempts) == (-10, False)
    ticket.release()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"gpu": []}',
        '{"gpus": []}',
        '{"gpus": ["0", "0"]}',
        '{"gpus": [{"uuid": "x"}]}',
        '{"tiers": {}}',
        '{"tiers": []}',
    ],
)
def test_a_broken_machine_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "machine.json").write_text(text)
    with pytest.raises(PlacementError, match=r"machine\.json is not understood") as caught:
        Book(tmp_path).devices()
    assert '"gpus"' in caught.value.next_step


def test_a_directory_that_cannot_be_shared_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlacementError, match="file"):
        Book(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two accounts: only root can become another user")
def test_two_users_share_a_machine_and_cannot_remove_each_other_s_claims() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        check_two_users(Book(Path(directory) / "book"))


def check_two_users(book: Book) -> None:
    (book.directory / "machine.json").write_text(json.dumps({"gpus": ["0", "1"]}))
    root = Ticket.file(book, NOTEBOOK, "root's")
    root.poll()
    code = (
        "import os, sys, pathlib\n"
        "from jupyter_paddle_gpu.placement.local.book import Book\n"
        "from jupyter_paddle_gpu.placement.local.lease import Ticket\n"
        "from jupyter_paddle_gpu.core.request import GpuRequest\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "book = Book(pathlib.Path(sys.argv[1]))\n"
        "ticket = Ticket.file(book, GpuRequest(), 'theirs'); ticket.poll()\n"
        "print(sorted((claim.label, claim.owner) for claim in book.claims()))\n"
        "try:\n    next(book.directory.glob(sys.argv[2] + '*')).unlink()\nexcept PermissionError: print('kept')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(book.directory), root.claim_id], capture_output=True, text=True, check=True
    )
    assert "('root\\'s', 'root')" in done.stdout.replace('"root\'s"', "'root\\'s'")
    assert "('theirs', 'nobody')" in done.stdout
    assert done.stdout.endswith("kept\n")
    root.release()
