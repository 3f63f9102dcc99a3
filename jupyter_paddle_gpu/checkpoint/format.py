"""The snapshot on disk: the contract for years.

A snapshot is a directory with two files:

    tensors.safetensors   every tensor, in the layout of the safetensors project, without gaps
    manifest.json         written last: without it the directory is no snapshot

The manifest is ``{"crc32": "xxxxxxxx", "manifest": BODY}`` on one line; the checksum is that of BODY's bytes. BODY has

    format, version   "jupyter-paddle-gpu snapshot", 1; a reader refuses a newer version
    sequence          from 1; orders the snapshots of a directory (clocks go backwards)
    created_s, seconds, cause, position, inexact, session     see core.snapshot.Snapshot
    nbytes            size of the tensor file
    header_nbytes, header_crc32      of its safetensors header, with the eight bytes of its length
    tensors           name → dtype, shape, begin, end (offsets into the tensor file), crc32
    structure         JSON values that refer to tensors by name

The tensor file is one that every safetensors library reads: no name is ``__metadata__``. A field that is new or has
another meaning makes a new version. Manifests of more than 256 MiB are neither written nor read.

Readers take offsets from the manifest, whose checksum they have verified, never from the tensor file. Nothing is ever
unpickled, and no name in a manifest is used as a path.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jupyter_paddle_gpu.checkpoint.state import DTYPE_BYTES, RawTensor
from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position

FORMAT = "jupyter-paddle-gpu snapshot"
VERSION = 1
MANIFEST = "manifest.json"
TENSORS = "tensors.safetensors"
MAX_MANIFEST_BYTES = 256 * 2**20

_PREFIX = b'{"crc32": "'
_MIDDLE = b'", "manifest": '
_SUFFIX = b"}\n"
_MAX_S = 250_000_000_000.0  # the year 9892: what every calendar can show


class Broken(Exception):
    """A file that is not what the format says; the text names the fault, the store adds the file."""


@dataclass(frozen=True)
class TensorEntry:
    """Where a tensor lies: bytes ``begin`` to ``end`` of the tensor file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int
    crc32: int


@dataclass(frozen=True)
class Manifest:
    """BODY of the module's docstring."""

    sequence: int
    created_s: float
    seconds: float
    cause: Cause
    nbytes: int
    header_nbytes: int
    header_crc32: int
    tensors: Mapping[str, TensorEntry]
    structure: Mapping[str, object]
    position: Position | None = None
    inexact: tuple[str, ...] = ()
    session: str = ""
    format: str = FORMAT
    version: int = field(default=VERSION)


def layout(tensors: Mapping[str, RawTensor]) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """Return the header of the tensor file and each tensor's bytes in it: wider elements first, so that all are
    aligned, as safetensors does it. The order of the mapping is the order in the file. Raises ValueError for a tensor
    whose bytes are not those of its dtype and shape."""
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPE_BYTES or name == "__metadata__":
            raise ValueError(f"tensor {name!r} of {tensor.dtype} has no place in a safetensors file")
        if tensor.nbytes != math.prod(tensor.shape) * DTYPE_BYTES[tensor.dtype]:
            raise ValueError(f"tensor {name!r} has {tensor.nbytes} bytes, not those of {tensor.dtype} {tensor.shape}")
    names = sorted(tensors, key=lambda name: (-DTYPE_BYTES[tensors[name].dtype], name))
    offsets = {}
    end = 0
    for name in names:
        begin, end = end, end + tensors[name].nbytes
        offsets[name] = (begin, end)
    header = {
        name: {"dtype": tensors[name].dtype, "shape": list(tensors[name].shape), "data_offsets": offsets[name]}
        for name in names
    }
    text = _json(header)
    text += b" " * (-len(text) % 8)
    start = 8 + len(text)
    places = {name: (start + begin, start + end) for name, (begin, end) in offsets.items()}
    return struct.pack("<Q", len(text)) + text, places


def encode(manifest: Manifest) -> bytes:
    """Return the manifest's file. Raises ValueError for a structure that JSON cannot hold, or that is too large."""
    try:
        _check(manifest)
    except Broken as error:
        raise ValueError(str(error)) from None
    body = _json(to_plain(manifest))
    if len(body) > MAX_MANIFEST_BYTES - 100:
        raise ValueError(
            f"the values beside the tensors take {len(body)} bytes, more than {MAX_MANIFEST_BYTES}: "
            "keep long lists of numbers as arrays"
        )
    return _PREFIX + f"{zlib.crc32(body):08x}".encode() + _MIDDLE + body + _SUFFIX


def decode(data: bytes) -> Manifest:
    """Return the manifest of a file's bytes, verified. Raises Broken."""
    start = len(_PREFIX) + 8 + len(_MIDDLE)
    body = data[start : -len(_SUFFIX)]
    if data != _PREFIX + f"{zlib.crc32(body):08x}".encode() + _MIDDLE + body + _SUFFIX:
        raise Broken("its checksum does not match, or it is cut off")
    try:
        plain = json.loads(body, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Broken(f"it is not JSON of ours: {error}") from None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise Broken("it is not a snapshot's manifest")
    if plain.get("version") != VERSION:
        raise Broken(
            f"it has version {plain.get('version')!r}, this program reads {VERSION}: upgrade jupyter-paddle-gpu"
        )
    try:
        manifest = from_plain(Manifest, plain)
    except WireError as error:
        raise Broken(str(error)) from None
    _check(manifest)
    return manifest


def _check(manifest: Manifest) -> None:
    """Refuse entries that do not lie in the tensor file one after the other."""
    times = (manifest.created_s, manifest.seconds)
    counts = [manifest.sequence]
    if position := manifest.position:
        counts += [position.step, position.epoch, position.batch]
    if not all(0 <= value <= _MAX_S for value in times) or not all(0 <= count < 2**63 for count in counts):
        raise Broken(f"its times {times} or counts {counts} cannot be")
    expected = manifest.header_nbytes
    for name, entry in sorted(manifest.tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if any(not 0 <= size < 2**63 for size in entry.shape):
            raise Broken(f"tensor {name!r} has the shape {entry.shape}")
        if entry.dtype not in DTYPE_BYTES:
            raise Broken(f"tensor {name!r} has the unknown dtype {entry.dtype!r}")
        if entry.begin != expected or entry.end - entry.begin != math.prod(entry.shape) * DTYPE_BYTES[entry.dtype]:
            raise Broken(f"tensor {name!r} does not fit its place")
        expected = entry.end
    if expected != manifest.nbytes or manifest.header_nbytes < 8:
        raise Broken(f"the tensors end at byte {expected} of {manifest.nbytes}")


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a character, as in names of files that are not UTF-8
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON has")
