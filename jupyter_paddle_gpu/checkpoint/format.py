"""The snapshot on disk: the contract for years.

A snapshot is a directory with these files:

    tensors.safetensors   what training moves, in the layout of the safetensors project, without gaps
    frozen.safetensors    the weights that do not train, if there are many: the same file (a hard link) in every
                          snapshot of a store, as long as they stay the same
    contents.json         the names, kinds and checksums of all tensors, and what refers to them; see contents.py
    manifest.json         written last: without it the directory is no snapshot
    pinned                an empty file where somebody wants the snapshot to stay

The manifest is ``{"crc32": "xxxxxxxx", "manifest": BODY}`` on one line; the checksum is that of BODY's bytes. BODY has

    format, version   "jupyter-paddle-gpu snapshot", 1; a reader refuses a newer version
    sequence          from 1; orders the snapshots of a directory (clocks go backwards)
    created_s, seconds, cause, position, inexact, session     see core.snapshot.Snapshot
    files             the names of the other files → their bytes
    contents_crc32    of contents.json

A field that is new or has another meaning makes a new version. Readers never unpickle, and use no name that they read
as a path: the names of the files are those above.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jupyter_paddle_gpu.checkpoint.pieces import crc32
from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position

FORMAT = "jupyter-paddle-gpu snapshot"
VERSION = 1
MANIFEST = "manifest.json"
CONTENTS = "contents.json"
TENSORS = "tensors.safetensors"
FROZEN = "frozen.safetensors"
PINNED = "pinned"
TENSOR_FILES = (TENSORS, FROZEN)
MAX_MANIFEST_BYTES = 2**20

_PREFIX = b'{"crc32": "'
_MIDDLE = b'", "manifest": '
_SUFFIX = b"}\n"
_MAX_S = 250_000_000_000.0  # the year 9892: what every calendar can show


class Broken(Exception):
    """A file that is not what the format says; the text names the fault, the store adds the file."""


@dataclass(frozen=True)
class Manifest:
    """BODY of the module's docstring."""

    sequence: int
    created_s: float
    seconds: float
    cause: Cause
    files: Mapping[str, int]
    contents_crc32: int
    position: Position | None = None
    inexact: tuple[str, ...] = ()
    session: str = ""
    format: str = FORMAT
    version: int = field(default=VERSION)

    @property
    def nbytes(self) -> int:
        """What the tensors take."""
        return sum(self.files.get(name, 0) for name in TENSOR_FILES)


def encode(manifest: Manifest) -> bytes:
    """Return the manifest's file. Raises ValueError for one that could not be read again."""
    body = to_json(to_plain(manifest))
    data = _PREFIX + f"{crc32(body):08x}".encode() + _MIDDLE + body + _SUFFIX
    try:
        decode(data)
    except Broken as error:
        raise ValueError(str(error)) from None
    return data


def decode(data: bytes) -> Manifest:
    """Return the manifest of a file's bytes, verified. Raises Broken."""
    start = len(_PREFIX) + 8 + len(_MIDDLE)
    body = data[start : -len(_SUFFIX)]
    if data != _PREFIX + f"{crc32(body):08x}".encode() + _MIDDLE + body + _SUFFIX:
        raise Broken("its checksum does not match, or it is cut off")
    plain = from_json(body)
    if plain.get("format") != FORMAT:
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
    times = (manifest.created_s, manifest.seconds)
    counts = [manifest.sequence, *manifest.files.values()]
    if position := manifest.position:
        counts += [position.step, position.epoch, position.batch]
    if not all(0 <= value <= _MAX_S for value in times) or not all(0 <= count < 2**63 for count in counts):
        raise Broken(f"its times {times} or counts {counts} cannot be")
    if unknown := sorted(set(manifest.files) - {CONTENTS, *TENSOR_FILES}):
        raise Broken(f"it names the file {unknown[0]!r}, which no snapshot has")
    if missing := {CONTENTS, TENSORS} - set(manifest.files):
        raise Broken(f"it does not name {min(missing)}")


def to_json(value: object) -> bytes:
    """Return compact JSON. Raises ValueError for what JSON cannot hold."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a character, as in names of files that are not UTF-8
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def from_json(data: bytes) -> dict[str, Any]:
    """Return the object that ``to_json`` wrote. Raises Broken."""
    try:
        plain = json.loads(data, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Broken(f"it is not JSON of ours: {error}") from None
    if not isinstance(plain, dict):
        raise Broken("it is not a JSON object")
    return plain


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON has")
