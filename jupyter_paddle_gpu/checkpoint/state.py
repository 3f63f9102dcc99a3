"""The training state between the capture, which knows paddle, and the files, which do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# safetensors' names of the element types, and their bytes; C128 is ours, see contents.layout
DTYPE_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8, "C64": 8, "C128": 16, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip


LEFT_OUT = "left_out"  # in the structure: names of tensors that belong to the state and are not in it


@dataclass(frozen=True)
class RawTensor:
    """One tensor: ``dtype`` by safetensors' name, ``shape``, and its elements in C order as little-endian bytes.

    ``data`` may be the live memory of a tensor: it is then valid only while the gate is held.
    """

    dtype: str
    shape: tuple[int, ...]
    data: memoryview

    @property
    def nbytes(self) -> int:
        return self.data.nbytes


@dataclass(frozen=True)
class State:
    """Everything that a snapshot holds: ``tensors`` by lasting name, and the JSON ``structure`` that refers to them.

    ``frozen`` are the names of those that do not train: they may be written once for many snapshots. ``left_out`` has a
    line for each thing that cannot be used where it was read.
    """

    tensors: Mapping[str, RawTensor]
    structure: Mapping[str, object]
    frozen: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def without_frozen(self) -> State:
        """Return the state without the weights that do not train: a restore leaves those as it finds them."""
        tensors = {name: tensor for name, tensor in self.tensors.items() if name not in self.frozen}
        return State(tensors, {**self.structure, LEFT_OUT: sorted(self.frozen)})
