"""The snapshot on disk: the contract for years.

A snapshot is a directory with these files:

    tensors.safetensors   what training moves, in the layout of the safetensors project, without gaps
    frozen.safetensors    the weights that do not train, if there are many: the same file (a hard link) in every
                          snapshot of a store, as long as they stay the same
    contents.json         the names, kinds and checksums of all tensors, and what refers to them; see contents.py
    manifest.json         written last: without it the directory is no snapshot
    pinned                an empty file where somebody wants the snapshot to stay

and, where several ranks have trained together, two files of each rank from 1 on (rank 0 has those above):

    rank-1.tensors.safetensors   those tensors that are not, byte for byte, in rank 0's files under the same name
    rank-1.contents.json         as contents.json, with the names of the tensors that stand in rank 0's files

The manifest is ``{"crc32": "xxxxxxxx", "manifest": BODY}`` on one line; the checksum is that of BODY's bytes. BODY has

    format, version   "jupyter-paddle-gpu snapshot", 1 or 2; a reader refuses a newer version
    sequence          from 1; orders the snapshots of a directory (clocks go backwards)
    created_s, seconds, cause, position, inexact, session     see core.snapshot.Snapshot
    files             the names of the other files → their bytes
    contents_crc32    of contents.json

and, in version 2, which is written for several ranks only,

    parts             the CRC-32 of rank-1.contents.json, of rank-2.contents.json, …

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
VERSION, VERSION_OF_RANKS = 1, 2
MANIFEST = "manifest.json"
CONTENTS = "contents.json"
TENSORS = "tensors.safetensors"
FROZEN = "frozen.safetensors"
PINNED = "pinned"
TENSOR_FILES = (TENSORS, FROZEN)
MAX_MANIFEST_BYTES = 2**20
MAX_RANKS = 2**12  # what a manifest has room for

_PREFIX = b'{"crc32": "'
_MIDDLE = b'", "manifest": '
_SUFFIX = b"}\n"
_MAX_S = 250_000_000_000.0  # the year 9892: what every calendar can show


def part_tensors(rank: int) -> str:
    """Return the name of the tensor file of a rank from 1 on."""
    return f"rank-{rank}.{TENSORS}"


def part_contents(rank: int) -> str:
    """Return the name of the contents of a rank from 1 on."""
    return f"rank-{rank}.{CONTENTS}"


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
    parts: tuple[int, ...] = ()
    format: str = FORMAT
    version: int = field(default=VERSION)

    @property
    def ranks(self) -> int:
        """How many ranks have written it."""
        return 1 + len(self.parts)

    @property
    def nbytes(self) -> int:
        """What the tensors take."""
        contents = {CONTENTS, *(part_contents(rank) for rank in range(1, self.ranks))}
        return sum(nbytes for name, nbytes in self.files.items() if name not in contents)


def encode(manifest: Manifest) -> bytes:
    """Return the manifest's file. Raises ValueError for one that could not be read again."""
    plain = to_plain(manifest)
    if not manifest.parts:
        del plain["parts"]  # version 1 knows none
    body = to_json(plain)
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
    version = plain.get("version")
    if type(version) is not int or version not in (VERSION, VERSION_OF_RANKS):
        raise Broken(
            f"it has version {version!r}, this program reads up to {VERSION_OF_RANKS}: upgrade jupyter-paddle-gpu"
        )
    if (version == VERSION_OF_RANKS) != bool(plain.get("parts")) or (version == VERSION and "parts" in plain):
        raise Broken("its version does not say whether several ranks have written it")
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
    if manifest.ranks > MAX_RANKS or not all(0 <= crc < 2**32 for crc in manifest.parts):
        raise Broken("its parts are too many, or none that can be")
    ranks = range(1, manifest.ranks)
    needed = {CONTENTS, TENSORS, *map(part_contents, ranks), *map(part_tensors, ranks)}
    if unknown := sorted(set(manifest.files) - needed - {FROZEN}):
        raise Broken(f"it names the file {unknown[0]!r}, which no snapshot has")
    if missing := needed - set(manifest.files):
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
