"""What the format takes, refuses to write, and refuses to read."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyter_paddle_gpu.checkpoint import contents, reader
from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.state import DTYPE_BYTES, RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt, SnapshotError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Snapshot

NUMPY_DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "I16": "i2", "U16": "u2", "F16": "f2", "I32": "i4", "U32": "u4", "F32": "f4",
    "I64": "i8", "U64": "u8", "F64": "f8", "C64": "c8",
}  # fmt: skip


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def save(directory: Path, state: State) -> Snapshot:
    return Store(directory).save(state, position=None, cause=Cause.MANUAL)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)])
def test_every_dtype_and_shape_is_read_by_safetensors(tmp_path: Path, shape: tuple[int, ...]) -> None:
    arrays = {
        dtype: (np.arange(np.prod(shape, dtype=int)) % 2).astype(code).reshape(shape)
        for dtype, code in NUMPY_DTYPES.items()
    }
    tensors = {name: RawTensor(name, shape, array.data) for name, array in arrays.items()}
    codes = {"BF16": "u2", "F8_E4M3": "u1", "F8_E5M2": "u1", "C128": "c16"}  # NumPy has no types for the first three
    tensors |= {name: RawTensor(name, shape, np.zeros(shape, code).data) for name, code in codes.items()}
    assert set(tensors) == set(DTYPE_BYTES)
    snapshot = save(tmp_path, State(tensors, {}))
    with safetensors.safe_open(snapshot.path / "tensors.safetensors", "np") as file:
        assert set(file.keys()) == set(DTYPE_BYTES)
        assert [file.get_slice(name).get_dtype() for name in codes] == ["BF16", "F8_E4M3", "F8_E5M2", "F64"]
        assert file.get_slice("C128").get_shape() == [*shape, 2]
        for name, array in arrays.items():
            read = file.get_tensor(name)
            assert (read.dtype, read.shape, read.tobytes()) == (array.dtype, shape, array.tobytes())


def test_the_file_is_the_one_that_safetensors_writes(tmp_path: Path) -> None:
    arrays = {"b": np.arange(6, dtype="f4").reshape(2, 3), "a": np.array(7, "i8"), "c": np.array([1, 0], "?")}
    tensors = {
        name: RawTensor(dtype, arrays[name].shape, memoryview(arrays[name].tobytes()))
        for name, dtype in (("b", "F32"), ("a", "I64"), ("c", "BOOL"))
    }
    snapshot = save(tmp_path, State(tensors, {}))
    assert (snapshot.path / "tensors.safetensors").read_bytes() == safetensors.numpy.save(arrays)


@pytest.mark.parametrize(
    ("state", "named"),
    [
        (State({"a": RawTensor("F32", (5,), memoryview(b"1234"))}, {}), "'a' has 4 bytes"),
        (State({"a": RawTensor("F128", (1,), memoryview(b"1234"))}, {}), "F128"),
        (State({"__metadata__": RawTensor("F32", (1,), memoryview(b"1234"))}, {}), "__metadata__"),
        (State({}, {"loss": float("nan")}), "JSON"),
        (State({}, {"loss": nested(100_000)}), "recursion"),
    ],
)
def test_a_state_that_could_not_be_read_again_is_not_written(tmp_path: Path, state: State, named: str) -> None:
    earlier = save(tmp_path, State({}, {}))
    with pytest.raises(SnapshotError, match=named):
        save(tmp_path, state)
    assert [place.name for place in tmp_path.iterdir()] == [earlier.path.name]


def test_a_structure_that_is_too_large_is_refused_when_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MAX_BYTES", 1500)
    save(tmp_path, State({}, {"history": [1] * 500}))
    with pytest.raises(SnapshotError, match="keep long lists of numbers as arrays"):
        save(tmp_path, State({}, {"history": [1] * 1000}))
    assert len(Store(tmp_path).list()) == 1


def test_half_a_character_in_a_text_does_not_cost_the_snapshot(tmp_path: Path) -> None:
    text = os.fsdecode(b"\xd1\xb5\xc1\xb7.csv")  # a name in GB18030, as a listing of a directory gives it
    save(tmp_path, State({"w." + text: RawTensor("U8", (1,), memoryview(b"1"))}, {"file": text}))
    _, loaded = Store(tmp_path).load()
    assert loaded.structure == {"file": text}
    assert list(loaded.tensors) == ["w." + text]


Files = tuple[bytes, bytes, dict[str, int]]


def signed(body: bytes) -> bytes:
    return b'{"crc32": "' + f"{zlib.crc32(body):08x}".encode() + b'", "manifest": ' + body + b"}\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The body of a manifest, the contents, and the sizes of the files."""
    tensors = {
        "a": RawTensor("F32", (1,), memoryview(b"1234")),
        "b": RawTensor("U8", (0,), memoryview(b"")),
        "c": RawTensor("U8", (2**20,), memoryview(bytes(2**20))),
    }
    state = State(tensors, {"x": [1, None, "é"]}, frozenset("c"))
    snapshot = save(tmp_path_factory.mktemp("body"), state)
    text = (snapshot.path / "manifest.json").read_bytes()
    found = text[text.index(b'"manifest": ') + 12 : -2]
    assert signed(found) == text
    sizes = layout.decode(text).files
    assert set(sizes) == {"contents.json", "tensors.safetensors", "frozen.safetensors"}
    return found, (snapshot.path / "contents.json").read_bytes(), dict(sizes)


JUNK = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"1e999", b"-1", b"9" * 400, b"null", b"{}", b"[]", b'"', b"[" * 5000, b"\\ud800", b"NaN", b"true"]
    ),
)
CHANGES = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 12), JUNK), min_size=1, max_size=4)


def changed(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for place, length, junk in changes:
        place %= len(data)
        data = data[:place] + junk + data[place + length :]
    return data


@given(CHANGES)
@settings(settings.get_profile("fuzz"), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_manifest_with_any_change_and_a_right_checksum_is_read_or_refused(
    files: Files, changes: list[tuple[int, int, bytes]]
) -> None:
    with contextlib.suppress(layout.Broken):
        manifest = layout.decode(signed(changed(files[0], changes)))
        assert set(manifest.files) <= set(files[2])


@given(CHANGES)
@settings(settings.get_profile("fuzz"), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_contents_with_any_change_are_read_or_refused(files: Files, changes: list[tuple[int, int, bytes]]) -> None:
    with contextlib.suppress(layout.Broken):
        found = contents.decode(changed(files[1], changes), files[2])
        assert all(found.files[name].nbytes == files[2][name] for name in found.files)


ANYTHING = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5)


@given(ANYTHING)
@settings(max_examples=100, deadline=None)
def test_any_value_in_any_field_is_read_or_refused(value: object) -> None:
    sizes = {"contents.json": 10, "tensors.safetensors": 12}
    good = {
        "format": layout.FORMAT, "version": 1, "sequence": 1, "created_s": 1.0, "seconds": 1.0, "cause": "manual",
        "position": None, "files": sizes, "contents_crc32": 0,
    }  # fmt: skip
    layout.decode(signed(json.dumps(good).encode()))
    for name in good:
        for other in (value, {"a": value}, [value], {**sizes, "tensors.safetensors": value}):
            with contextlib.suppress(layout.Broken):
                layout.decode(signed(json.dumps(good | {name: other}).encode()))
    file: dict[str, object] = {"header": 8, "header_crc32": 0, "tensors": {"a": ["U8", [4], 0]}}
    contents.decode(json.dumps({"files": {"tensors.safetensors": file}, "structure": {}}).encode(), sizes)
    rows: list[object] = [value, [value], ["U8", value, 0], ["U8", [4], value], [value, [4], 0], ["U8", [value], 0]]
    parts: list[dict[str, object]] = [{"header": value}, {"header_crc32": value}]
    parts += [{"tensors": {"a": row}} for row in rows]
    for part in parts:
        with contextlib.suppress(layout.Broken):
            plain = {"files": {"tensors.safetensors": {**file, **part}}, "structure": {}}
            contents.decode(json.dumps(plain).encode(), sizes)


def test_a_hard_link_to_something_else_is_refused(tmp_path: Path) -> None:
    snapshot = save(tmp_path / "s", State({"a": RawTensor("U8", (4,), memoryview(b"1234"))}, {}))
    file = snapshot.path / "tensors.safetensors"
    other = tmp_path / "other"
    other.write_bytes(bytes(file.stat().st_size))
    file.unlink()
    file.hardlink_to(other)
    with pytest.raises(SnapshotCorrupt, match=r"tensors\.safetensors: the checksum"):
        Store(tmp_path / "s").load(snapshot)


def test_a_backup_by_hard_links_costs_nothing(tmp_path: Path) -> None:
    snapshot = save(tmp_path / "s", State({"a": RawTensor("U8", (4,), memoryview(b"1234"))}, {}))
    for file in snapshot.path.iterdir():
        (tmp_path / file.name).hardlink_to(file)
    Store(tmp_path / "s").verify(snapshot)


def test_a_disk_that_cannot_be_read_is_named() -> None:
    """The first bytes of /proc/self/mem answer with EIO, as those of a bad disk do."""
    fd = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        with pytest.raises(layout.Broken, match="it cannot be read: Input/output error"):
            reader._read(fd, 10)
    finally:
        os.close(fd)


def test_a_newer_version_says_what_to_do(files: Files) -> None:
    newer = signed(files[0].replace(b'"version":1', b'"version":3'))
    with pytest.raises(layout.Broken, match="version 3, this program reads up to 2: upgrade"):
        layout.decode(newer)
