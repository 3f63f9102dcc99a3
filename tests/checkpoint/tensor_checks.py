"""What test_tensors.py runs in a process with Paddle: tensors of every type and shape come back byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest

from jupyter_paddle_gpu.checkpoint.capture import optimizers, tensors
from jupyter_paddle_gpu.checkpoint.capture.inventory import Trained
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.notice import Cause

SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (3, 0, 2), (5,), (2, 3, 4))


def made(dtype: str, shape: tuple[int, ...]) -> Any:
    values = np.random.default_rng(1).standard_normal(shape) * 100
    whole = paddle.to_tensor(np.asarray(values))
    return whole.astype("complex128").astype(dtype) if dtype.startswith("complex") else whole.astype(dtype)


def through_a_file(directory: Path, raw: RawTensor) -> RawTensor:
    store = Store(directory)
    store.save(State({"t": raw}, {}), position=None, cause=Cause.MANUAL)
    return store.load()[1].tensors["t"]


def every_type_and_shape_comes_back(tmp_path: Path, dtype: str) -> None:
    for shape in SHAPES:
        tensor = made(dtype, shape)
        raw = through_a_file(tmp_path, tensors.live(tensor))
        assert raw.shape == shape
        back = tensors.build(raw)
        assert (back.dtype, tuple(back.shape)) == (tensor.dtype, shape)
        assert bytes(tensors.live(back).data) == bytes(tensors.live(tensor).data)


def what_is_not_contiguous_comes_back_in_its_order(tmp_path: Path, how: str) -> None:
    whole = paddle.arange(24, dtype="float32").reshape([4, 6])
    view = {"transposed": whole.t(), "every second": whole[:, ::2], "a part": whole[1:3, 2:5]}[how]
    raw = through_a_file(tmp_path, tensors.live(view))
    assert np.array_equal(tensors.build(raw).numpy(), view.numpy())


def a_large_one_comes_back_whole(tmp_path: Path, nbytes: int) -> None:
    values = np.arange(nbytes, dtype="int64").astype("uint8") ^ (np.arange(nbytes) // 65_537 % 251).astype("uint8")
    raw = through_a_file(tmp_path, tensors.live(paddle.to_tensor(values)))
    back = tensors.build(raw)
    assert np.array_equal(back.numpy(), values)
    assert bytes(tensors.live(back).data) == values.tobytes()


def a_type_that_has_no_place_is_named() -> None:
    class Text:
        dtype = "paddle.pstring"

    with pytest.raises(SnapshotError, match="A tensor of pstring has no place"):
        tensors.dtype_name(Text())


class Mine(paddle.optimizer.SGD):  # type: ignore[misc]  # paddle is not followed
    """A user's optimizer: a counter, a tensor and a dict of tensors of its own."""

    def __init__(self, rate: float, size: int, **options: Any) -> None:
        super().__init__(rate, **options)
        self.size, self.count, self.mean = size, 0, paddle.zeros([2])
        self.by_name: dict[str, Any] = {}


def an_optimizer_of_the_users_own_keeps_its_counters_and_says_what_it_cannot() -> None:
    net = paddle.nn.Linear(2, 2)
    optimizer = Mine(0.1, 3, parameters=net.parameters())
    item = Trained(optimizer, [(0, name, param) for name, param in net.named_parameters()])
    assert optimizers.inexact(item) == []
    optimizer.count, optimizer.size = 7, 9
    optimizer.mean.set_value(paddle.ones([2]))
    into: dict[str, RawTensor] = {}
    structure = {**optimizers.heavy(item, 0, into), "params": [[0, name] for _, name, _ in item.params]}
    saved = {name: RawTensor(raw.dtype, raw.shape, memoryview(bytes(raw.data))) for name, raw in into.items()}
    optimizer.count, optimizer.size = 0, 4
    mean = optimizer.mean
    mean.set_value(paddle.zeros([2]))
    optimizers.restore(item, 0, structure, saved)
    assert (optimizer.count, optimizer.size) == (7, 4), "what the constructor is given is not state"
    assert mean.tolist() == [1, 1], "who refers to the tensor sees it"
    optimizer.by_name["w"] = paddle.ones([2])
    (text,) = optimizers.inexact(item)
    assert "Mine keeps tensors in its attribute by_name" in text
