"""Snapshots on disk: whole or not there, and the last good one stays whatever happens to the disk."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyter_paddle_gpu.checkpoint.state import DTYPE_BYTES, RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.errors import SnapshotNotFound, StoreUnwritable
from jupyter_paddle_gpu.core.notice import Cause
from tests.checkpoint.saving import content, save, state


@st.composite
def tensors(draw: st.DrawFn) -> RawTensor:
    dtype = draw(st.sampled_from(sorted(DTYPE_BYTES)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    data = draw(st.binary(min_size=(n := int(np.prod(shape)) * DTYPE_BYTES[dtype]), max_size=n))
    return RawTensor(dtype, shape, memoryview(data))


@given(st.dictionaries(st.text(max_size=8), tensors(), max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_saved_is_loaded(tmp_path: Path, parts: dict[str, RawTensor]) -> None:
    store = Store(tmp_path / "s", keep=1)
    given_state = State(parts, {"names": sorted(parts)})
    snapshot = store.save(given_state, position=None, cause=Cause.DRILL)
    used, loaded = store.load()
    assert content(loaded) == content(given_state)
    assert loaded.structure == given_state.structure
    assert used == snapshot


def test_other_programs_read_the_tensors(tmp_path: Path) -> None:
    snapshot = save(Store(tmp_path), 3)
    read = safetensors.numpy.load_file(snapshot.path / "tensors.safetensors")
    expected = state(3)
    assert {name: array.tobytes() for name, array in read.items()} == {
        name: bytes(tensor.data) for name, tensor in expected.tensors.items()
    }
    assert read["训练.偏置"].shape == ()


def test_snapshots_are_listed_newest_first_with_what_people_ask(tmp_path: Path) -> None:
    store = Store(tmp_path / "训练 1")
    save(store, 5)
    save(store, 9, Cause.PREEMPTED)
    newest, older = store.list()
    assert (newest.step, newest.cause, older.step, newest.session) == (9, Cause.PREEMPTED, 5, "s")
    assert newest.path.name == "000002-step-9"
    assert newest.nbytes == (newest.path / "tensors.safetensors").stat().st_size
    assert store.rate is not None


def test_the_newest_stay_and_the_last_exact_one(tmp_path: Path) -> None:
    store = Store(tmp_path, keep=2)
    exact = save(store, 0)
    for step in (1, 2, 3):
        store.save(state(step), position=None, cause=Cause.MANUAL, inexact=("no position",))
    assert [snapshot.path.name for snapshot in store.list()] == ["000004-state", "000003-state", exact.path.name]


def test_the_order_does_not_trust_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    save(store, 1)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    save(store, 2)
    assert [snapshot.step for snapshot in store.list()] == [2, 1]


SAVER = """
import sys, pathlib
from tests.checkpoint.saving import save
from jupyter_paddle_gpu.checkpoint.store import Store
store = Store(pathlib.Path(sys.argv[1]), keep=int(sys.argv[3]))
print("ready", flush=True)
for step in range(1, int(sys.argv[2])):
    save(store, step, size=400_000)
    print(step, flush=True)
"""


def saver(directory: Path, steps: int, keep: int = 3) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SAVER, str(directory), str(steps), str(keep)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def test_two_processes_save_into_one_directory(tmp_path: Path) -> None:
    first, second = saver(tmp_path, 15, keep=40), saver(tmp_path, 15, keep=40)
    first.communicate()
    second.communicate()
    assert (first.returncode, second.returncode) == (0, 0)
    store = Store(tmp_path)
    assert sorted(snapshot.step or 0 for snapshot in store.list()) == sorted([*range(1, 15), *range(1, 15)])
    for snapshot in store.list():
        store.verify(snapshot)


def test_a_save_in_progress_is_not_taken_for_abandoned(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path)

    def meanwhile(written: int) -> None:
        if not other.list():
            save(other, 1)

    snapshot = store.save(state(2), position=None, cause=Cause.MANUAL, progress=meanwhile)
    store.verify(snapshot)
    assert len(store.list()) == 2


def test_the_manifest_comes_after_everything_else_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real_fsync, real_rename = os.fsync, Path.rename

    def fsync(fd: int) -> None:
        calls.append("fsync " + Path(f"/proc/self/fd/{fd}").readlink().name)
        real_fsync(fd)

    def rename(path: Path, target: Path) -> Path:
        calls.append(f"rename {path.name} {target.name}")
        return real_rename(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", rename)
    place = save(Store(tmp_path / "d"), 1).path.name
    assert calls == [
        f"fsync {tmp_path.name}", "fsync tensors.safetensors", "fsync contents.json", f"fsync {place}", "fsync d",
        "fsync manifest.json.tmp", "rename manifest.json.tmp manifest.json", f"fsync {place}",
    ]  # fmt: skip


def test_a_removed_snapshot_is_gone_and_others_stay(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = save(store, 1), save(store, 2)
    store.delete(second)
    store.delete(second)
    assert store.list() == (first,)
    outside = Store(tmp_path / "other")
    with pytest.raises(SnapshotNotFound):
        outside.delete(first)
    assert store.list() == (first,)


def test_a_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "snapshots").write_text("")
    with pytest.raises(StoreUnwritable, match="snapshots"):
        save(Store(tmp_path / "snapshots"), 1)


def test_a_volume_that_fills_up_in_the_middle_leaves_the_previous_snapshot(tmp_path: Path) -> None:
    code = (
        "import pathlib, resource, signal, sys\n"
        "from tests.checkpoint.saving import save\n"
        "from jupyter_paddle_gpu.checkpoint.store import Store\n"
        "from jupyter_paddle_gpu.core.errors import StoreUnwritable\n"
        "store = Store(pathlib.Path(sys.argv[1])); save(store, 1)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "try: save(store, 2, size=4_000_000)\n"
        "except StoreUnwritable as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert "File too large" in done.stdout
    assert "free, 16.0 MB needed" in done.stdout
    assert [snapshot.step for snapshot in Store(tmp_path).list()] == [1]
    assert len(list(tmp_path.iterdir())) == 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small volume")
@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_small_volume(tmp_path: Path, fault: str) -> None:
    mount = ["unshare", "--mount", "sh", "-c"]
    if subprocess.run([*mount, f"mount -t tmpfs none {tmp_path}"], capture_output=True).returncode:
        pytest.skip("this machine does not let root mount")
    script = (
        f'mount -t tmpfs -o size=2m none {tmp_path} && {sys.executable} -c "$0" {tmp_path} 1 100 && '
        + (f"mount -o remount,ro {tmp_path} && " if fault == "read-only" else "")
        + f'{sys.executable} -c "$0" {tmp_path} 2 2000000'
    )
    code = (
        "import pathlib, sys\n"
        "from tests.checkpoint.saving import save\n"
        "from jupyter_paddle_gpu.checkpoint.store import Store\n"
        "from jupyter_paddle_gpu.core.errors import StoreUnwritable\n"
        "store = Store(pathlib.Path(sys.argv[1]))\n"
        "try: save(store, int(sys.argv[2]), size=int(sys.argv[3]))\n"
        "except StoreUnwritable as error: print(error)\n"
        "print([snapshot.step for snapshot in store.list()], len(list(store.directory.iterdir())))\n"
    )
    done = subprocess.run([*mount, script, code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert ("No space left" if fault == "full" else "Read-only file system") in done.stdout
    assert done.stdout.endswith("[1] 1\n")


def test_an_interrupted_save_is_discarded_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, 1)

    def interrupt(written: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.save(state(2), position=None, cause=Cause.MANUAL, progress=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["000001-step-1"]


def test_a_snapshot_removed_while_others_list(tmp_path: Path) -> None:
    store = Store(tmp_path)
    snapshot = save(store, 1)
    shutil.rmtree(snapshot.path)
    assert store.list() == ()
    with pytest.raises(SnapshotNotFound):
        store.load(snapshot)
