"""Tensors of every type and shape come back byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jupyter_paddle_gpu.checkpoint.keep import Decoder, Encoder
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.notice import Cause
from tests.checkpoint.harness import call

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


def check(name: str, *arguments: object) -> None:
    call("tests.checkpoint.tensor_checks", name, *arguments)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_and_shape_comes_back(tmp_path: Path, dtype: str) -> None:
    check("every_type_and_shape_comes_back", tmp_path, dtype)


@pytest.mark.parametrize("how", ["transposed", "every second", "a part"])
def test_what_is_not_contiguous_comes_back_in_its_order(tmp_path: Path, how: str) -> None:
    check("what_is_not_contiguous_comes_back_in_its_order", tmp_path, how)


@pytest.mark.parametrize("nbytes", [4 * 2**20 - 1, 4 * 2**20, 9 * 2**20 + 3])  # written back by one thread, then by two
def test_a_large_one_comes_back_whole(tmp_path: Path, nbytes: int) -> None:
    check("a_large_one_comes_back_whole", tmp_path, nbytes)


def test_a_type_that_has_no_place_is_named() -> None:
    check("a_type_that_has_no_place_is_named")


def test_an_optimizer_of_the_users_own_keeps_its_counters_and_says_what_it_cannot() -> None:
    check("an_optimizer_of_the_users_own_keeps_its_counters_and_says_what_it_cannot")


def test_more_than_two_gigabytes_in_one_tensor(tmp_path: Path) -> None:
    data = np.zeros(2**31 + 100, "u1")
    data[:: 2**20] = 7
    data[-1] = 9
    store = Store(tmp_path)
    store.save(State({"t": RawTensor("U8", data.shape, data.data)}, {}), position=None, cause=Cause.MANUAL)
    raw = store.load()[1].tensors["t"]
    assert np.array_equal(np.frombuffer(raw.data, "u1"), data)


def test_ten_thousand_tensors_some_of_them_empty(tmp_path: Path) -> None:
    state = State(
        {str(n): RawTensor("U8", (n % 3,), memoryview(bytes([n % 256]) * (n % 3))) for n in range(10_000)}, {}
    )
    store = Store(tmp_path)
    store.save(state, position=None, cause=Cause.MANUAL)
    loaded = store.load()[1].tensors
    assert {name: bytes(raw.data) for name, raw in loaded.items()} == {
        name: bytes(raw.data) for name, raw in state.tensors.items()
    }


def test_a_complex_number_of_numpy_comes_back() -> None:
    value = [np.complex128(1 + 2j), np.arange(4).astype("complex128").reshape(2, 2)[:, 1]]
    into: dict[str, RawTensor] = {}
    data = Encoder("", into).encode(value, "v")
    number, array = Decoder(into).decode(data)
    assert (number, number.dtype, array.tolist()) == (1 + 2j, np.complex128, [1, 3])
