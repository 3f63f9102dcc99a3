"""Snapshots on disk: whole or not there, checked, and harmless whatever somebody put in their place."""

from __future__ import annotations

import json
import logging
import os
import pickle
import random
import resource
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.state import DTYPE_BYTES, RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt, SnapshotNotFound, StoreUnwritable
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position, Snapshot


def raw(array: np.ndarray, dtype: str) -> RawTensor:
    return RawTensor(dtype, array.shape, memoryview(array.tobytes()))


def state(step: int = 0, size: int = 1000) -> State:
    values = np.random.default_rng(step).standard_normal(size).astype("float32")
    return State(
        {"model.weight": raw(values, "F32"), "训练.偏置": raw(np.array(step), "I64")}, {"epoch": step, "名": "值"}
    )


def save(store: Store, step: int, cause: Cause = Cause.MANUAL, size: int = 1000) -> Snapshot:
    return store.save(state(step, size), position=Position(step, 0, step), cause=cause, session="s")


def content(loaded: State) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (tensor.dtype, tensor.shape, bytes(tensor.data)) for name, tensor in loaded.tensors.items()}


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
from tests.checkpoint.test_store import save
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


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    snapshot = save(Store(tmp_path), 1, size=50)
    chance = random.Random(2)
    for name in ("tensors.safetensors", "contents.json", "manifest.json"):
        file = snapshot.path / name
        good = file.read_bytes()
        for _ in range(100):
            bad = bytearray(good)
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            file.write_bytes(bad)
            with pytest.raises(SnapshotCorrupt, match=name):
                Store(tmp_path).load(snapshot)
        file.write_bytes(good)
    Store(tmp_path).verify(snapshot)


@pytest.mark.parametrize("name", ["tensors.safetensors", "contents.json", "manifest.json"])
@pytest.mark.parametrize("change", ["empty", "cut", "longer", "missing", "symlink", "pipe", "directory", "pickle"])
def test_a_broken_newest_is_named_and_the_one_before_is_used(
    tmp_path: Path, name: str, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    save(store, 1)
    broken = save(store, 2)
    spoil(broken.path / name, change, tmp_path)
    with caplog.at_level(logging.WARNING):
        used, loaded = store.load()
    assert used.step == 1
    assert content(loaded) == content(state(1))
    assert not (tmp_path / "ran").exists()
    if (name, change) != ("manifest.json", "missing"):  # that one is no snapshot at all
        assert str(broken.path) in caplog.text
        assert name in caplog.text
        with pytest.raises(SnapshotCorrupt, match=name):
            store.load(broken)


class Hostile:
    """What a pickle can do to those who load it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return (os.mkdir, (str(self.marker),))


def spoil(file: Path, change: str, tmp_path: Path) -> None:
    good = file.read_bytes()
    file.unlink()
    if change == "symlink":
        (tmp_path / "elsewhere").write_bytes(good)
        file.symlink_to(tmp_path / "elsewhere")
    elif change == "pipe":
        os.mkfifo(file)
    elif change == "directory":
        file.mkdir()
    elif change != "missing":
        spoiled = {
            "empty": b"",
            "cut": good[:-1],
            "longer": good + b"\0",
            "pickle": pickle.dumps(Hostile(tmp_path / "ran")),
        }
        file.write_bytes(spoiled[change])


def forge(path: Path, manifest: dict[str, object], tensors: dict[str, object], **file: object) -> None:
    """Write a manifest and contents with right checksums and wrong fields."""
    contents = json.loads((path / "contents.json").read_bytes())
    if tensors or file:
        contents["files"]["tensors.safetensors"] |= {"tensors": tensors, **file}
    data = json.dumps(contents).encode()
    (path / "contents.json").write_bytes(data)
    body = json.loads((path / "manifest.json").read_bytes())["manifest"]
    body["files"]["contents.json"], body["contents_crc32"] = len(data), zlib.crc32(data)
    (path / "manifest.json").write_bytes(signed(json.dumps(body | manifest).encode()))


def signed(body: bytes) -> bytes:
    return b'{"crc32": "' + f"{zlib.crc32(body):08x}".encode() + b'", "manifest": ' + body + b"}\n"


SIZES = {"contents.json": 1, "tensors.safetensors": 8}


@pytest.mark.parametrize(
    ("manifest", "named"),
    [
        ({"version": 3}, "upgrade"),
        ({"version": True}, "upgrade"),
        ({"version": 2}, "does not say whether several ranks"),
        ({"parts": []}, "does not say whether several ranks"),
        ({"version": 2, "parts": [1]}, "does not name rank-1"),
        ({"version": 2, "parts": [-1]}, "none that can be"),
        ({"format": "pickle"}, "not a snapshot's manifest"),
        ({"cause": "os.system"}, "not one of"),
        ({"position": {"step": "1"}}, "Position"),
        ({"surprise": 1}, "surprise"),
        ({"created_s": "now"}, "created_s"),
        ({"created_s": 10**400}, "created_s"),
        ({"created_s": 1e300}, "cannot be"),
        ({"seconds": -1.0}, "cannot be"),
        ({"sequence": -1}, "cannot be"),
        ({"position": {"step": -1, "epoch": 0, "batch": 0}}, "cannot be"),
        ({"files": {**SIZES, "../../etc/passwd": 1}}, "which no snapshot has"),
        ({"files": {**SIZES, "tensors.safetensors": -1}}, "cannot be"),
        ({"files": {**SIZES, "tensors.safetensors": 2**63}}, "cannot be"),
        ({"files": {"contents.json": 1}}, "does not name tensors"),
        ({"files": SIZES}, "contents.json: its checksum"),
        ({"files": []}, "needs an object"),
        ({"contents_crc32": None}, "contents_crc32"),
    ],
)
def test_forged_manifests_are_refused(tmp_path: Path, manifest: dict[str, object], named: str) -> None:
    snapshot = save(Store(tmp_path), 1)
    forge(snapshot.path, manifest, {})
    with pytest.raises(SnapshotCorrupt, match=named):
        Store(tmp_path).load(snapshot)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (["F32", [-1], 0], "shape of 'x'"),
        (["F32", [2**40, 2**40], 0], "end at byte"),
        (["F32", [10**4000], 0], "shape of 'x'"),
        (["F32", [10**400], 0], "shape of 'x'"),
        (["F32", [True], 0], "shape of 'x'"),
        (["F32", 1, 0], "no shape"),
        (["object", [1], 0], "unknown dtype"),
        ([["F32"], [1], 0], "unknown dtype"),
        (["F32", [1], None], "crc32 of 'x'"),
        (["F32", [1]], "needs dtype, shape and crc32"),
        ({"begin": 0}, "needs dtype, shape and crc32"),
    ],
)
def test_forged_tensors_are_refused(tmp_path: Path, row: object, named: str) -> None:
    snapshot = save(Store(tmp_path), 1)
    forge(snapshot.path, {}, {"x": row})
    with pytest.raises(SnapshotCorrupt, match=named):
        Store(tmp_path).load(snapshot)


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ({"header": 2**60}, "end at byte"),
        ({"header": -8}, "header is no count"),
        ({"header_crc32": "0"}, "header_crc32"),
        ({"begin": 0}, "needs header, header_crc32 and tensors"),
    ],
)
def test_forged_tensor_files_are_refused(tmp_path: Path, file: dict[str, object], named: str) -> None:
    snapshot = save(Store(tmp_path), 1)
    forge(snapshot.path, {}, {"x": ["F32", [1], 0]}, **file)
    with pytest.raises(SnapshotCorrupt, match=named):
        Store(tmp_path).load(snapshot)


def test_a_name_that_climbs_is_only_a_name(tmp_path: Path) -> None:
    raw_state = State({"../../etc/passwd": raw(np.array(1), "I64")}, {})
    Store(tmp_path / "d").save(raw_state, position=None, cause=Cause.MANUAL)
    assert list(Store(tmp_path / "d").load()[1].tensors) == ["../../etc/passwd"]
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"format": 1, "format": 2}', b'{"format": NaN}', b"1" * 10_000, b"\xff\xfe", b"null"],
)
def test_json_that_is_no_manifest_is_refused(body: bytes) -> None:
    with pytest.raises(layout.Broken):
        layout.decode(signed(body))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_read_never_more(data: bytes) -> None:
    with pytest.raises(layout.Broken):
        layout.decode(data)


def test_a_directory_without_a_manifest_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "000007-step-7").mkdir()
    store = Store(tmp_path)
    assert store.list() == ()
    with pytest.raises(SnapshotNotFound, match="no snapshot"):
        store.load()
    assert save(store, 8).path.name == "000008-step-8"


def test_when_all_are_broken_all_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for step in (1, 2):
        (save(store, step).path / "tensors.safetensors").write_bytes(b"")
    with pytest.raises(SnapshotCorrupt, match="000002-step-2, 000001-step-1"):
        store.load()


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
        "from tests.checkpoint.test_store import save\n"
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
        "from tests.checkpoint.test_store import save\n"
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
