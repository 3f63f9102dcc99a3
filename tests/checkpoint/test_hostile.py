"""A snapshot is checked, and harmless whatever somebody put in its place."""

from __future__ import annotations

import json
import logging
import os
import pickle
import random
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt, SnapshotNotFound
from jupyter_paddle_gpu.core.notice import Cause
from tests.checkpoint.saving import content, raw, save, state


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
