"""The random state of NumPy and Python, and of generator objects of the user's own."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

Generator = Any  # np.random.RandomState, np.random.Generator or random.Random


def take() -> dict[str, Any]:
    """Return the state of all global generators, quickly; ``plain`` makes values of it."""
    state = {"numpy": np.random.get_state(legacy=False), "python": _packed(random.getstate())}
    if (paddle := paddle_side()) is not None:
        state["paddle"] = paddle.randomness.take()
    return state


def plain(state: dict[str, Any]) -> dict[str, Any]:
    """Return what ``take`` returned as numbers and arrays."""
    if (paddle := paddle_side()) is None or "paddle" not in state:
        return state
    return {**state, "paddle": paddle.randomness.plain(state["paddle"])}


def give(state: dict[str, Any]) -> tuple[str, ...]:
    """Set all global generators from plain values; returns the devices whose generators are not there."""
    np.random.set_state(state["numpy"])
    random.setstate(_unpacked(state["python"]))
    if "paddle" not in state:
        return ()
    paddle = paddle_side()
    return tuple(state["paddle"]) if paddle is None else tuple(paddle.randomness.give(state["paddle"]))


def paddle_side() -> Any:
    """Return the part of this package that knows paddle; None where the process has not imported paddle."""
    if "paddle" not in sys.modules:
        return None
    from jupyter_paddle_gpu.checkpoint import capture
    from jupyter_paddle_gpu.checkpoint.capture import inventory, picture, randomness, restoring  # noqa: F401  # loads

    return capture


def is_generator(value: object) -> bool:
    return isinstance(value, (np.random.RandomState, np.random.Generator, random.Random))


def take_one(generator: Generator) -> Any:
    """Return one generator's state as plain values."""
    if isinstance(generator, random.Random):
        return _packed(generator.getstate())
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state(legacy=False)


def give_one(generator: Generator, state: Any) -> None:
    """Set one generator to what ``take_one`` returned for one of its kind."""
    if isinstance(generator, random.Random):
        generator.setstate(_unpacked(state))
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def _packed(state: Any) -> Any:
    version, internal, gauss = state
    return (version, np.array(internal, np.uint32), gauss)


def _unpacked(state: Any) -> Any:
    version, internal, gauss = state
    return (version, tuple(int(part) for part in internal), gauss)
