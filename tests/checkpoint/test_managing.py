"""Listing, showing, verifying, pinning, deleting: what people do with snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint import managing
from jupyter_paddle_gpu.checkpoint.retention import Held, superfluous
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.checkpoint.where import KEEP, limits
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt, SnapshotError, SnapshotNotFound, StoreUnwritable
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position, Snapshot


def state(nbytes: int) -> State:
    return State({"w": RawTensor("U8", (nbytes,), memoryview(bytes(nbytes)))}, {"paddle": "3.3.1"})


def save(store: Store, step: int, nbytes: int = 1000, cause: Cause = Cause.MANUAL) -> Snapshot:
    return store.save(state(nbytes), position=Position(step, 0, 0), cause=cause)


def steps(store: Store) -> list[int | None]:
    return [snapshot.step for snapshot in store.list()]


def test_what_is_pinned_stays_until_it_is_unpinned(tmp_path: Path) -> None:
    store = Store(tmp_path, keep=1)
    save(store, 1)
    assert "stays" in str(managing.pin(store, "1"))
    for step in (2, 3):
        save(store, step)
    assert steps(store) == [3, 1]
    assert "(pinned)" in str(managing.overview(Store(tmp_path)))
    with pytest.raises(SnapshotError, match=r"pinned\. Unpin it first"):
        managing.delete(store, "1")
    managing.unpin(store, "1")
    save(store, 4)
    assert steps(store) == [4]


def test_a_quota_holds_and_the_newest_stays(tmp_path: Path) -> None:
    store = Store(tmp_path, keep=9, quota_bytes=35_000)
    for step in range(1, 6):
        save(store, step, nbytes=10_000)
    assert steps(store) == [5, 4, 3]
    with pytest.raises(StoreUnwritable, match=r"A snapshot of 40\.0 kB is more than the quota of 35\.0 kB"):
        save(store, 6, nbytes=40_000)
    assert steps(store) == [5, 4, 3]
    managing.pin(store, "3")
    with pytest.raises(StoreUnwritable, match="or unpin a snapshot"):
        save(store, 6, nbytes=30_000)


def test_weights_that_many_refer_to_count_once(tmp_path: Path) -> None:
    store = Store(tmp_path, keep=3, quota_bytes=3 * 2**20)
    large = RawTensor("U8", (2**21,), memoryview(bytes(2**21)))
    for step in (1, 2, 3):
        store.save(State({"w": large}, {}, frozenset("w")), position=Position(step, 0, 0), cause=Cause.MANUAL)
    assert steps(store) == [3, 2, 1]


def held(name: str, *, whole: bool = True, exact: bool = True, pinned: bool = False) -> Held:
    return Held(Path(name), whole, exact, pinned, {name: 10})


@pytest.mark.parametrize(
    ("quota", "gone"),
    [(None, ["1"]), (40, ["1"]), (30, ["1", "4"]), (20, ["1", "4"]), (0, ["1", "4"])],
)
def test_under_any_quota_the_newest_whole_and_the_newest_exact_and_the_pinned_stay(
    quota: int | None, gone: list[str]
) -> None:
    snapshots = [held("5", exact=False), held("4", exact=False), held("3"), held("2", pinned=True), held("1")]
    assert [path.name for path in superfluous(snapshots, 3, quota)] == gone


def test_a_drill_pushes_nothing_out(tmp_path: Path) -> None:
    store = Store(tmp_path, keep=2)
    for step in (1, 2):
        save(store, step)
    store.delete(save(store, 3, cause=Cause.DRILL))
    assert steps(store) == [2, 1]


def test_show_says_what_is_in_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, 7)
    shown = str(managing.show(store, None))
    assert "step 7" in shown
    assert "3.3.1" in shown
    assert "U8 [1000], 1.0 kB" in shown


def test_verify_names_each_broken_one_and_the_good(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for step in (1, 2, 3):
        save(store, step)
    assert str(managing.verify(store, None)).count("whole; ") == 3
    file = tmp_path / "000002-step-2" / "tensors.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(SnapshotCorrupt, match=r"000002-step-2 is broken.*Good: 000003-step-3, 000001-step-1"):
        managing.verify(store, None)
    assert "whole" in str(managing.verify(store, "3"))


def test_names_that_are_not_there_are_answered_with_those_that_are(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(SnapshotNotFound, match="Save one first"):
        managing.show(store, None)
    save(store, 1)
    for action in (managing.show, managing.verify, managing.pin, managing.unpin, managing.delete):
        with pytest.raises(SnapshotNotFound, match="There are: 000001-step-1"):
            action(store, "../../etc")
    with pytest.raises(SnapshotError, match="Which snapshot"):
        managing.delete(store, None)
    assert "left: none" in str(managing.delete(store, "000001-step-1"))
    assert steps(store) == []


def test_a_snapshot_that_is_removed_meanwhile_is_not_pinned(tmp_path: Path) -> None:
    store = Store(tmp_path)
    snapshot = save(store, 1)
    store.delete(snapshot)
    with pytest.raises(SnapshotNotFound):
        store.pin(snapshot)
    assert list(tmp_path.iterdir()) == []


def test_limits_that_do_not_read_are_named_and_count_as_none() -> None:
    assert limits({}).keep == KEEP
    assert limits({"JUPYTER_PADDLE_GPU_SNAPSHOT_QUOTA": "2Gi"}).quota_bytes == 2 << 30
    wrong = limits({"JUPYTER_PADDLE_GPU_SNAPSHOT_KEEP": "0", "JUPYTER_PADDLE_GPU_SNAPSHOT_QUOTA": "much"})
    assert (wrong.keep, wrong.quota_bytes, len(wrong.faults)) == (KEEP, None, 2)
