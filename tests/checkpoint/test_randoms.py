"""The state of NumPy's and Python's generators at a boundary, whatever was drawn since the last one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_paddle_gpu.checkpoint import randoms

DRAWS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "uniform": lambda: np.random.rand(3),
    "one normal": lambda: np.random.randn(),
    "permutation": lambda: np.random.permutation(700),
    "integer": lambda: np.random.randint(9),
    "seed": lambda: np.random.seed(3),
    "python": lambda: random.random(),
    "python normal": lambda: random.gauss(0, 1),
    "python seed": lambda: random.seed(5),
}


def numbers() -> list[float]:
    return [np.random.randn(), np.random.rand(), random.gauss(0, 1), random.random()]


@given(st.lists(st.sampled_from(sorted(DRAWS)), max_size=12), st.lists(st.sampled_from(sorted(DRAWS)), max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_was_taken_gives_the_same_numbers(before: list[str], after: list[str]) -> None:
    for name in before:
        randoms.take()
        DRAWS[name]()
    state = randoms.take()
    plain = randoms.plain(state)
    expected = numbers()
    for name in after:
        DRAWS[name]()
    randoms.give(plain)
    assert numbers() == expected


def test_a_state_taken_before_is_not_changed_by_later_draws() -> None:
    first = randoms.plain(randoms.take())
    key, position = first["numpy"]["state"]["key"].copy(), first["numpy"]["state"]["pos"]
    np.random.rand(2000)
    randoms.take()
    assert np.array_equal(first["numpy"]["state"]["key"], key)
    assert first["numpy"]["state"]["pos"] == position


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64])
def test_a_global_generator_of_another_kind(kind: type[np.random.BitGenerator]) -> None:
    numpy_random: Any = np.random  # its types do not name these two
    before = numpy_random.get_bit_generator()
    numpy_random.set_bit_generator(kind(7))
    try:
        state = randoms.take()
        expected = [np.random.randn() for _ in range(3)]
        randoms.take()
        np.random.set_state(state["numpy"])
        assert [np.random.randn() for _ in range(3)] == expected
    finally:
        numpy_random.set_bit_generator(before)
