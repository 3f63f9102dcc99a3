"""A directory that others write to: nothing in it may stop, mislead or harm those who read it."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.local import claimfile, shared
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import HeldLease, Ticket
from tests.placement.local.conftest import NOBODY, AsNobody


def rewrite(book: Book, ticket: Ticket, **fields: object) -> None:
    """Change the text of a live claim, as its owner could with an editor."""
    path = book.directory / f"{ticket.claim_id}.claim"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize("text", ["", "{", "[" * 60_000, "\udcff", '{"id": 1}', "null", '{"id": NaN}'])
def test_text_that_is_no_claim_is_left_out(shared_book: Book, text: str) -> None:
    broken, good = (Ticket.file(shared_book, GpuRequest(), name) for name in ("broken", "good"))
    path = shared_book.directory / f"{broken.claim_id}.claim"
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert good.poll()
    assert [claim.label for claim in shared_book.claims()] == ["good"]
    for ticket in (broken, good):
        ticket.release()


@pytest.mark.parametrize(
    "lie",
    [{"gpus": 99}, {"gpus": 0}, {"since_s": float("nan")}, {"since_s": float("-inf")}, {"devices": ["no such"]}],
)
def test_a_claim_that_nobody_could_have_blocks_nobody(shared_book: Book, lie: dict[str, object]) -> None:
    liar = Ticket.file(shared_book, GpuRequest(tier="urgent"), "liar")
    rewrite(shared_book, liar, **lie)
    honest = [Ticket.file(shared_book, GpuRequest(), "honest") for _ in range(2)]
    assert all(ticket.poll() for ticket in honest)
    for ticket in [liar, *honest]:
        ticket.release()


def test_who_a_claim_belongs_to_says_the_file_and_its_label_cannot_steer_a_terminal(shared_book: Book) -> None:
    ticket = Ticket.file(shared_book, GpuRequest(), "训练 1.ipynb")
    rewrite(shared_book, ticket, owner="somebody else", label="\x1b[2J训练\n\u202e" + "x" * 9999)
    (claim,) = shared_book.claims()
    assert claim.owner == claimfile.account(os.geteuid())
    assert claim.label.startswith("?[2J训练??xxx")
    assert len(claim.label) == 200
    ticket.release()


def test_a_tier_that_left_the_ladder_still_holds_its_device(shared_book: Book) -> None:
    holder = Ticket.file(shared_book, GpuRequest(tier="batch"), "old tier")
    assert holder.poll()
    tiers = {"urgent": {"priority": 5}, "notebook": {"priority": 1, "preempts": False}}
    (shared_book.directory / "machine.json").write_text(json.dumps({"gpus": ["0"], "tiers": tiers}))
    book = Book(shared_book.directory)
    waiter = Ticket.file(book, GpuRequest(), "waiter")
    assert not waiter.poll()
    assert [claim.devices for claim in book.claims() if claim.label == "old tier"] == [("0",)]
    for ticket in (holder, waiter):
        ticket.release()


def test_a_full_disk_costs_no_claim(shared_book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = Ticket.file(shared_book, GpuRequest(), "mine")

    def full(fd: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(PlacementError, match="No space left on device"):
            ticket.change(GpuRequest(tier="batch"))
        with pytest.raises(PlacementError, match="No space left on device"):
            Ticket.file(shared_book, GpuRequest(), "another")
    assert [(claim.label, claim.tier) for claim in shared_book.claims()] == [("mine", "notebook")]
    ticket.release()


def test_a_claim_that_was_removed_says_so_instead_of_waiting_for_ever(shared_book: Book) -> None:
    ticket = Ticket.file(shared_book, GpuRequest(), "mine")
    (shared_book.directory / f"{ticket.claim_id}.claim").unlink()
    with pytest.raises(PlacementError, match="was removed from the book"):
        ticket.wait(timeout_s=10)
    ticket.release()


def test_a_book_that_is_gone_is_an_error_of_ours(shared_book: Book) -> None:
    ticket = Ticket.file(shared_book, GpuRequest(), "mine")
    ticket.poll()
    lease = HeldLease.attach(shared_book.directory, ticket.claim_id, ticket.fd)
    for path in shared_book.directory.iterdir():
        path.unlink()
    shared_book.directory.rmdir()
    with pytest.raises(PlacementError, match="cannot be read"):
        lease.eviction()
    lease.release()


def test_a_lock_that_is_held_too_long_is_named(shared_book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "LOCK_PATIENCE_S", 0.05)
    with shared_book.locked(), pytest.raises(PlacementError, match="held the lock"):
        shared_book.claims()


def test_a_directory_that_was_there_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    Ticket.file(Book(tmp_path), GpuRequest(), "mine").release()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_new_directory_is_everybody_s_whatever_the_umask(tmp_path: Path) -> None:
    previous = os.umask(0o077)
    try:
        book = Book(tmp_path / "a" / "book")
    finally:
        os.umask(previous)
    assert stat.S_IMODE(book.directory.stat().st_mode) == 0o1777
    assert stat.S_IMODE((book.directory / "lock").stat().st_mode) == 0o644
    assert [path.name for path in book.directory.parent.iterdir()] == ["book"]


def test_many_who_make_it_at_once_share_one_lock(tmp_path: Path) -> None:
    inodes: list[int] = []
    together = threading.Barrier(8)

    def make() -> None:
        together.wait()
        book = Book(tmp_path / "book")
        with book.locked():
            inodes.append((book.directory / "lock").stat().st_ino)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(inodes) == 8
    assert len(set(inodes)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["book"]


def test_a_directory_where_anybody_could_remove_claims_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(PlacementError, match="remove everybody's claims"):
        Book(tmp_path)


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "book").symlink_to(tmp_path / "real")
    with pytest.raises(PlacementError, match="symbolic link"):
        Book(tmp_path / "book")


def test_a_directory_of_somebody_else_that_cannot_be_written(shared_book: Book, as_nobody: AsNobody) -> None:
    shared_book.directory.chmod(0o755)
    said = as_nobody("try: Book(directory)\nexcept PaddleGpuError as error: print(error)")
    assert "cannot be written" in said
    assert "chmod 1777" in said


def test_users_with_a_narrow_umask_see_each_other_and_wait_their_turn(shared_book: Book, as_nobody: AsNobody) -> None:
    previous = os.umask(0o077)
    try:
        mine = Ticket.file(shared_book, GpuRequest(gpus=2), "mine")
    finally:
        os.umask(previous)
    assert mine.poll()
    code = (
        "ticket = Ticket.file(Book(directory), GpuRequest(), 'theirs')\n"
        "print(ticket.poll(), ticket.position(), ticket.why())\n"
    )
    assert as_nobody(code).startswith("False 1 Needs 1 GPU, 0 of 2 free; held by mine (notebook)")
    assert [claim.label for claim in shared_book.claims()] == ["mine"]
    mine.release()


def test_the_lock_of_another_user_serves_all(shared_book: Book, as_nobody: AsNobody) -> None:
    (shared_book.directory / "lock").unlink()
    as_nobody("Ticket.file(Book(directory), GpuRequest(), 'theirs').release()")
    assert (shared_book.directory / "lock").stat().st_uid == NOBODY
    assert shared_book.claims() == []


def test_a_machine_file_of_just_anybody_is_ignored(shared_book: Book, as_nobody: AsNobody) -> None:
    path = shared_book.directory / "machine.json"
    path.unlink()
    as_nobody("""(directory / "machine.json").write_text('{"gpus": ["mine"]}')""")
    assert "mine" not in [device.id for device in Book(shared_book.directory).devices()]
