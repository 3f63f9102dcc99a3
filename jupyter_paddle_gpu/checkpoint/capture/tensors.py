"""Paddle tensors and their bytes."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import paddle

from jupyter_paddle_gpu.checkpoint.arrays import DTYPES, array_of, raw_array
from jupyter_paddle_gpu.checkpoint.state import DTYPE_BYTES, RawTensor
from jupyter_paddle_gpu.core.errors import SnapshotError

_NAMES = {**DTYPES, "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
_SHARED_BYTES = 4 * 2**20  # below, a thread costs more than it brings
_PADDLE = {name: kind for kind, name in _NAMES.items()}


def dtype_name(tensor: Any) -> str:
    """Return the name of a tensor's element type in a snapshot. Raises SnapshotError for one that has none."""
    name = str(tensor.dtype).rpartition(".")[2]
    if name not in _NAMES:
        raise SnapshotError(f"A tensor of {name} has no place in a snapshot", f"There are {', '.join(_NAMES)}.")
    return _NAMES[name]


def live(tensor: Any) -> RawTensor:
    """Return a tensor over its own memory where the host can reach it and it is contiguous, else over a copy."""
    if not (tensor.place.is_cpu_place() and tensor.is_contiguous()):
        return copy(tensor)
    name, shape = dtype_name(tensor), tuple(tensor.shape)
    nbytes = DTYPE_BYTES[name] * int(np.prod(shape, dtype=np.int64))
    if not nbytes:
        return RawTensor(name, shape, memoryview(b""))
    memory = (ctypes.c_char * nbytes).from_address(tensor.data_ptr())
    memory.owner = tensor  # type: ignore[attr-defined]  # the memory lives as long as somebody looks at it
    return RawTensor(name, shape, memoryview(memory).cast("B"))


def copy(tensor: Any) -> RawTensor:
    """Return a tensor over a copy of its elements."""
    name, shape = dtype_name(tensor), tuple(tensor.shape)
    return RawTensor(name, shape, raw_array(np.array(tensor.numpy(), copy=True)).data)


def moved(gradient: Any) -> bool:
    """Whether a gradient is more than a cleared one, which is zero."""
    if gradient.is_selected_rows():
        return True
    if gradient.place.is_cpu_place() and gradient.is_contiguous():
        return bool(np.frombuffer(live(gradient).data, np.uint8).any())
    return bool((gradient.astype("float32") != 0).any())


def build(raw: RawTensor) -> Any:
    """Return a new tensor on the current device."""
    with paddle.no_grad():
        tensor = paddle.zeros(list(raw.shape), dtype=_PADDLE[raw.dtype])
        fill(tensor, raw)
    return tensor


def fill(tensor: Any, raw: RawTensor) -> None:
    """Write the elements into the tensor's own memory. The caller has compared type and shape."""
    if not raw.nbytes:
        return
    if tensor.place.is_cpu_place() and tensor.is_contiguous():
        source = np.frombuffer(raw.data, np.uint8)
        _copy_bytes(tensor.data_ptr(), source.ctypes.data, raw.nbytes)
    else:
        with paddle.no_grad():
            tensor.set_value(array_of(raw))


def _copy_bytes(target: int, source: int, nbytes: int) -> None:
    """Copy between two addresses; much of it in two threads, for one alone does not get what the memory gives."""
    if nbytes < _SHARED_BYTES:
        ctypes.memmove(target, source, nbytes)
        return
    half = nbytes // 2
    other = threading.Thread(target=ctypes.memmove, args=(target + half, source + half, nbytes - half))
    other.start()
    ctypes.memmove(target, source, half)
    other.join()


def differs(tensor: Any, raw: RawTensor) -> str:
    """Return how type or shape differ (empty: they agree)."""
    name, shape = dtype_name(tensor), tuple(tensor.shape)
    if (name, shape) == (raw.dtype, raw.shape):
        return ""
    return f"{_show(raw.dtype, raw.shape)} in the snapshot, {_show(name, shape)} here"


def assign_like(target: Any, source: Any) -> bool:
    """Write one tensor into another of the same type and shape; False: they differ."""
    raw = live(source)
    if differs(target, raw):
        return False
    fill(target, raw)
    return True


def _show(name: str, shape: tuple[int, ...]) -> str:
    return f"{_PADDLE[name]}[{', '.join(map(str, shape))}]"
