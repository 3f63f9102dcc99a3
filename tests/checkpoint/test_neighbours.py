"""Several processes in one directory: each sees whole snapshots only, and none removes what another writes."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint import removal
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.errors import SnapshotNotFound, StoreUnwritable
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position, Snapshot

ROOT = Path(__file__).parents[2]
STATE = State({"w": RawTensor("U8", (1000,), memoryview(bytes(1000)))}, {})


def save(directory: Path, step: int, keep: int = 3) -> Snapshot:
    return Store(directory, keep).save(STATE, position=Position(step, 0, 0), cause=Cause.MANUAL)


SAVER = """
import pathlib, sys
from tests.checkpoint.test_neighbours import save
for step in range(60):
    save(pathlib.Path(sys.argv[1]), step, keep=1)
"""


def test_listing_and_loading_while_two_others_save_and_remove(tmp_path: Path) -> None:
    save(tmp_path, 1)
    savers = [
        subprocess.Popen([sys.executable, "-c", SAVER, str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    looks = 0
    while any(process.poll() is None for process in savers):
        store = Store(tmp_path)
        store.load()
        for snapshot in store.list():
            try:
                store.verify(snapshot)
                looks += 1
            except SnapshotNotFound:
                pass  # removed since
        time.sleep(0.01)
    for process in savers:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
    assert looks > 10
    assert len(list(tmp_path.iterdir())) <= 2


def test_a_save_that_ends_while_another_process_looks_for_abandoned_ones_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look for the manifest and the look at the lock the save ends."""
    place = save(tmp_path, 1).path
    (place / "manifest.json").rename(tmp_path / "aside")
    real_open = os.open

    def ends_just_now(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if (tmp_path / "aside").exists():
            (tmp_path / "aside").rename(place / "manifest.json")
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", ends_just_now)
    removal.remove_abandoned(place)
    monkeypatch.undo()
    assert Store(tmp_path).load()[0].step == 1


def test_a_tensor_file_that_is_not_locked_yet_is_not_taken_for_abandoned(tmp_path: Path) -> None:
    place = tmp_path / "000001-state"
    place.mkdir()
    (place / "tensors.safetensors").touch()
    removal.remove_abandoned(place)
    assert place.exists()
    for path in (place / "tensors.safetensors", place):
        os.utime(path, (0, 0))
    removal.remove_abandoned(place)
    assert not place.exists()


def test_two_that_begin_at_once_get_different_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked before either has made its directory."""
    real_mkdir = Path.mkdir

    def mkdir(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if path.name == "000001-step-7":
            real_mkdir(tmp_path / "000001-step-8")
        real_mkdir(path, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert save(tmp_path, 7).path.name == "000002-step-7"
    assert sorted(place.name for place in tmp_path.iterdir()) == ["000001-step-8", "000002-step-7"]


def test_many_threads_save_at_once(tmp_path: Path) -> None:
    threads = [threading.Thread(target=save, args=(tmp_path, step, 50)) for step in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    snapshots = Store(tmp_path).list()
    assert sorted(snapshot.step or 0 for snapshot in snapshots) == list(range(20))
    assert len({snapshot.path.name.split("-")[0] for snapshot in snapshots}) == 20


def test_a_snapshot_whose_tensors_are_gone_does_not_push_out_the_last_good_one(tmp_path: Path) -> None:
    good = save(tmp_path, 1, keep=1)
    broken = save(tmp_path, 2, keep=2)
    (broken.path / "tensors.safetensors").write_bytes(b"")
    Store(tmp_path, keep=1).tidy()
    assert Store(tmp_path).load()[0] == good


def test_a_mount_without_locks_and_directory_syncs_is_good_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*arguments: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    real_fsync = os.fsync
    monkeypatch.setattr(fcntl, "flock", unsupported)
    monkeypatch.setattr(
        os, "fsync", lambda fd: unsupported() if Path(f"/proc/self/fd/{fd}").is_dir() else real_fsync(fd)
    )
    store = Store(tmp_path)
    begun = tmp_path / "000001-state"
    begun.mkdir()
    (begun / "tensors.safetensors").write_bytes(b"1")
    snapshot = save(tmp_path, 3)
    store.verify(snapshot)
    assert begun.exists(), "without locks nobody can tell that its writer is gone"


@pytest.mark.parametrize("name", ["训练 1.ipynb 的快照", "a" * 255, "x/" * 200 + "y"])
def test_names_that_a_file_system_takes(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    snapshot = save(directory, 12)
    assert Store(directory).load()[0] == snapshot
    assert snapshot.path.name == "000001-step-12"


def test_a_name_that_no_file_system_takes_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnwritable, match=r"长: File name too long \(.*1.0 kB needed"):
        save(tmp_path / ("长" * 100), 1)
