"""Arrays as the tensors of a snapshot, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from jupyter_paddle_gpu.checkpoint.state import RawTensor
from jupyter_paddle_gpu.core.errors import NotKept

DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "float16": "F16", "int32": "I32",
    "uint32": "U32", "float32": "F32", "int64": "I64", "uint64": "U64", "float64": "F64", "complex64": "C64",
    "complex128": "C128",
}  # fmt: skip
_NUMPY = {name: np.dtype(kind) for kind, name in DTYPES.items()}
_NUMPY |= {"BF16": np.dtype("uint16"), "F8_E4M3": np.dtype("uint8"), "F8_E5M2": np.dtype("uint8")}


def raw_array(array: np.ndarray[Any, Any]) -> RawTensor:
    """Return an array as a tensor that shares its memory where it can. Raises NotKept for objects, texts and dates."""
    name = DTYPES.get(array.dtype.newbyteorder("=").name)
    if name is None:
        raise NotKept(f"an array of {array.dtype} holds no numbers", "Keep an array of numbers.")
    flat = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1)
    return RawTensor(name, array.shape, flat.view(np.uint8).data if flat.size else memoryview(b""))


def array_of(tensor: RawTensor) -> np.ndarray[Any, Any]:
    """Return a tensor as an array over the same bytes, not to be written to; what NumPy has no type for as numbers."""
    dtype = _NUMPY[tensor.dtype]
    if not tensor.nbytes:
        return np.zeros(tensor.shape, dtype)
    return np.frombuffer(tensor.data, dtype).reshape(tensor.shape)
