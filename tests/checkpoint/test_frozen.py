"""Weights that do not train are written once, and every snapshot stays whole by itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Snapshot

LARGE = 2**20


def state(step: int, weights: bytes = b"w" * LARGE) -> State:
    tensors = {
        "head": RawTensor("U8", (4,), memoryview(step.to_bytes(4, "little"))),
        "backbone": RawTensor("U8", (len(weights),), memoryview(weights)),
    }
    return State(tensors, {"step": step}, frozenset({"backbone"}))


def save(store: Store, what: State) -> Snapshot:
    return store.save(what, position=None, cause=Cause.MANUAL)


def taken(directory: Path) -> int:
    """Bytes on the disk, each file counted once."""
    files = {file.stat().st_ino: file.stat().st_size for file in directory.rglob("*") if file.is_file()}
    return sum(files.values())


def content(store: Store, snapshot: Snapshot) -> dict[str, bytes]:
    return {name: bytes(raw.data) for name, raw in store.load(snapshot)[1].tensors.items()}


@pytest.mark.parametrize("again", ["the same process", "another process"])
def test_the_second_snapshot_takes_what_trains(tmp_path: Path, again: str) -> None:
    store = Store(tmp_path, keep=9)
    first = save(store, state(1))
    before = taken(tmp_path)
    second = save(store if again == "the same process" else Store(tmp_path, keep=9), state(2))
    assert taken(tmp_path) - before <= 0.03 * before
    assert [content(store, s) for s in (first, second)] == [
        {name: bytes(raw.data) for name, raw in state(step).tensors.items()} for step in (1, 2)
    ]
    assert store.load(second)[1].frozen == {"backbone"}
    assert first.nbytes == second.nbytes > LARGE


def test_frozen_weights_that_somebody_changed_are_written_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = save(store, state(1))
    second = save(store, state(2, b"x" + b"w" * (LARGE - 1)))
    assert content(store, first)["backbone"] == b"w" * LARGE
    assert content(store, second)["backbone"] == b"x" + b"w" * (LARGE - 1)


def test_the_weights_outlast_the_snapshot_that_wrote_them(tmp_path: Path) -> None:
    store = Store(tmp_path, keep=1)
    for step in (1, 2, 3):
        save(store, state(step))
    (last,) = store.list()
    assert content(store, last)["backbone"] == b"w" * LARGE
    store.delete(last)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", ["no hard links", "removed meanwhile", "cut off", "a link"])
def test_where_nothing_can_be_referred_to_they_are_written(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, keep=9)
    file = save(store, state(1)).path / "frozen.safetensors"
    if fault == "no hard links":

        def link(*_: object, **__: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    elif fault == "cut off":
        file.write_bytes(b"")
    else:
        file.unlink()
        if fault == "a link":
            file.symlink_to("/etc/hostname")
    second = save(store, state(2))
    assert content(store, second)["backbone"] == b"w" * LARGE
    assert not (second.path / "frozen.safetensors").is_symlink()


def test_a_flipped_bit_in_the_weights_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    snapshot = save(store, state(1))
    file = snapshot.path / "frozen.safetensors"
    data = bytearray(file.read_bytes())
    data[-5] ^= 16
    file.write_bytes(data)
    with pytest.raises(SnapshotCorrupt, match=r"frozen\.safetensors: the checksum of tensor 'backbone'"):
        store.verify(snapshot)


def test_a_few_frozen_weights_get_no_file_of_their_own(tmp_path: Path) -> None:
    snapshot = save(Store(tmp_path), state(1, b"w" * 100))
    assert sorted(file.name for file in snapshot.path.iterdir()) == [
        "contents.json", "manifest.json", "tensors.safetensors",
    ]  # fmt: skip
