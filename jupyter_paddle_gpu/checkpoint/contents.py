"""What the tensor files of a snapshot hold: contents.json.

``{"files": {FILE: {"header": BYTES, "header_crc32": CRC, "tensors": {NAME: [DTYPE, SHAPE, CRC], …}}, …},
"structure": …}``

The tensors of a file stand in the order of their bytes, which follow one another without gaps behind the header of
safetensors (with the eight bytes of its length): so their places follow from their kinds and shapes, and cannot
overlap. Each name stands once in all files, none is ``__metadata__``. ``structure`` are JSON values that refer to
tensors by name. The contents of a rank from 1 on have ``"shared": [NAME, …]`` beside these: tensors of rank 0's files
that are this rank's too. Contents of more than 256 MiB are neither written nor read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_paddle_gpu.checkpoint.format import TENSOR_FILES, Broken, from_json, part_tensors, to_json
from jupyter_paddle_gpu.checkpoint.state import DTYPE_BYTES, RawTensor

MAX_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Entry:
    """A tensor in its file: safetensors' name of its element type, its shape, the CRC-32 of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    crc32: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class TensorFile:
    """A safetensors file: its header of ``header`` bytes, then the ``tensors``, in this order."""

    header: int
    header_crc32: int
    tensors: Mapping[str, Entry]

    @property
    def nbytes(self) -> int:
        return self.header + sum(entry.nbytes for entry in self.tensors.values())


@dataclass(frozen=True)
class Contents:
    """The tensor files by name, and the structure; ``shared``: the names that a rank from 1 on has in rank 0's files
    (None: these are rank 0's)."""

    files: Mapping[str, TensorFile]
    structure: Mapping[str, object]
    shared: tuple[str, ...] | None = None

    def entries(self) -> dict[str, Entry]:
        """Return the tensors of all files."""
        return {name: entry for file in self.files.values() for name, entry in file.tensors.items()}

    def optimizers(self) -> list[Mapping[str, object]]:
        """Return what the structure says of each optimizer."""
        found = self.structure.get("optimizers")
        return [part for part in found if isinstance(part, dict) and "kind" in part] if isinstance(found, list) else []


def layout(tensors: Mapping[str, RawTensor]) -> tuple[bytes, dict[str, RawTensor]]:
    """Return the header of a tensor file, and the tensors in the order of their bytes: wider elements first, so that
    all are aligned, as safetensors does it. What it has no name for, complex128, stands there as pairs of F64. Raises
    ValueError for a tensor whose bytes are not those of its dtype and shape."""
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPE_BYTES or name == "__metadata__":
            raise ValueError(f"tensor {name!r} of {tensor.dtype} has no place in a safetensors file")
        if tensor.nbytes != math.prod(tensor.shape) * DTYPE_BYTES[tensor.dtype]:
            raise ValueError(f"tensor {name!r} has {tensor.nbytes} bytes, not those of {tensor.dtype} {tensor.shape}")
    names = sorted(tensors, key=lambda name: (-DTYPE_BYTES[tensors[name].dtype], name))
    header = {}
    end = 0
    for name in names:
        tensor = tensors[name]
        begin, end = end, end + tensor.nbytes
        dtype, shape = ("F64", (*tensor.shape, 2)) if tensor.dtype == "C128" else (tensor.dtype, tensor.shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": (begin, end)}
    text = to_json(header)
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, {name: tensors[name] for name in names}


def encode(contents: Contents) -> bytes:
    """Return contents.json. Raises ValueError for a structure that JSON cannot hold, or that is too large."""
    files = {
        name: {
            "header": file.header,
            "header_crc32": file.header_crc32,
            "tensors": {name: (entry.dtype, entry.shape, entry.crc32) for name, entry in file.tensors.items()},
        }
        for name, file in contents.files.items()
    }
    shared = {} if contents.shared is None else {"shared": contents.shared}
    data = to_json({"files": files, "structure": contents.structure, **shared})
    if len(data) > MAX_BYTES:
        raise ValueError(
            f"the values beside the tensors take {len(data)} bytes, more than {MAX_BYTES}: "
            "keep long lists of numbers as arrays"
        )
    return data


def decode(data: bytes, sizes: Mapping[str, int], rank: int = 0) -> Contents:
    """Return the contents of a rank's file. ``sizes``: of all files, by the manifest. Raises Broken."""
    plain = from_json(data)
    files = _object(plain.get("files"), "files")
    possible = (part_tensors(rank),) if rank else TENSOR_FILES
    fields = {"files", "structure", "shared"} if rank else {"files", "structure"}
    if set(plain) != fields or set(files) != {name for name in possible if name in sizes}:
        raise Broken("it does not hold the files that the manifest names")
    contents = Contents(
        {name: _tensor_file(value) for name, value in files.items()},
        _object(plain["structure"], "structure"),
        _names(plain["shared"]) if rank else None,
    )
    for name, file in contents.files.items():
        if file.header < 8 or file.nbytes != sizes[name]:
            raise Broken(f"the tensors end at byte {file.nbytes} of {sizes[name]} of {name}")
    names = [*(contents.shared or ()), *(name for file in contents.files.values() for name in file.tensors)]
    if len(set(names)) != len(names) or "__metadata__" in names:
        raise Broken("a tensor stands in two files, or has a name that none has")
    return contents


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Broken("shared needs the names of tensors")
    return tuple(value)


def _tensor_file(value: Any) -> TensorFile:
    plain = _object(value, "a tensor file")
    if set(plain) != {"header", "header_crc32", "tensors"}:
        raise Broken("a tensor file needs header, header_crc32 and tensors")
    tensors = {name: _entry(name, row) for name, row in _object(plain["tensors"], "tensors").items()}
    return TensorFile(_count(plain["header"], "header"), _count(plain["header_crc32"], "header_crc32"), tensors)


def _entry(name: str, row: Any) -> Entry:
    if not isinstance(row, list) or len(row) != 3:
        raise Broken(f"tensor {name!r} needs dtype, shape and crc32")
    dtype, shape, crc = row
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise Broken(f"tensor {name!r} has the unknown dtype {str(dtype)[:20]!r}")
    if not isinstance(shape, list):
        raise Broken(f"tensor {name!r} has no shape")
    return Entry(
        dtype, tuple([_count(size, f"shape of {name!r}") for size in shape]), _count(crc, f"crc32 of {name!r}")
    )


def _count(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise Broken(f"the {what} is no count")
    return value


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Broken(f"{what} needs an object")
    return value
