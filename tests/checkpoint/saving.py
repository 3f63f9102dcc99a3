"""Small snapshots for tests of the store."""

from __future__ import annotations

import numpy as np

from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
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
