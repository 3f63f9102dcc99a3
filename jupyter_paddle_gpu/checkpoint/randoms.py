"""The random state of NumPy and Python, and of generator objects of the user's own."""

from __future__ import annotations

import ctypes
import random
import sys
from typing import Any

import numpy as np

Generator = Any  # np.random.RandomState, np.random.Generator or random.Random


_MT_NBYTES = 624 * 4 + 4  # Mersenne Twister: 624 words and the place among them


class _NumpyState:
    """NumPy's global state, copied again only when it has moved: a copy takes 50 µs, and most steps draw nothing.

    The generator's memory, whose address NumPy tells, shows whether it has moved. A second normal number is kept
    outside of it (``has_gauss``): while there is one, the memory does not tell.
    """

    def __init__(self) -> None:
        self._generator: Any = None
        self._address = 0
        self._memory = b""
        self._state: dict[str, Any] = {"has_gauss": 1}

    def take(self) -> dict[str, Any]:
        """Return ``np.random.get_state(legacy=False)``."""
        generator = np.random.mtrand._rand._bit_generator  # the only name in NumPy 1.23
        if generator is not self._generator:
            self._generator = generator
            known = type(generator) is np.random.MT19937
            self._address = generator.ctypes.state_address if known else 0
            self._memory = b""
        memory = ctypes.string_at(self._address, _MT_NBYTES) if self._address else b""
        if not memory or memory != self._memory or self._state["has_gauss"]:
            self._state, self._memory = dict(np.random.get_state(legacy=False)), memory
        return self._state


class _PythonState:
    """Python's global state, copied again only when it has moved, likewise. Where its memory lies behind its object is
    CPython's own matter: it is compared with what ``getstate`` says before it is relied upon."""

    def __init__(self) -> None:
        generator = random.getstate.__self__  # type: ignore[attr-defined]  # a bound method of the global generator
        self._generator: random.Random = generator
        self._address = id(generator) + object.__basicsize__
        self._memory = b""
        self._gauss: float | None = None
        self._state = random.getstate()
        memory = ctypes.string_at(self._address, _MT_NBYTES) if type(generator) is random.Random else b""
        *words, place = self._state[1]
        self._readable = memory == np.array([place, *words], np.uint32).tobytes()

    def take(self) -> tuple[Any, ...]:
        """Return ``random.getstate()``."""
        if not self._readable:
            return random.getstate()
        memory, gauss = ctypes.string_at(self._address, _MT_NBYTES), self._generator.gauss_next  # type: ignore[attr-defined]  # not in its stub
        if memory != self._memory or gauss != self._gauss:
            self._state, self._memory, self._gauss = random.getstate(), memory, gauss
        return self._state


_numpy, _python = _NumpyState(), _PythonState()


def take() -> dict[str, Any]:
    """Return the state of all global generators, quickly; ``plain`` makes values of it."""
    state: dict[str, Any] = {"numpy": _numpy.take(), "python": _python.take()}
    if (paddle := paddle_side()) is not None:
        state["paddle"] = paddle.randomness.take()
    return state


def plain(state: dict[str, Any]) -> dict[str, Any]:
    """Return what ``take`` returned as numbers and arrays."""
    values = {**state, "python": _packed(state["python"])}
    if (paddle := paddle_side()) is not None and "paddle" in state:
        values["paddle"] = paddle.randomness.plain(state["paddle"])
    return values


def give(state: dict[str, Any]) -> tuple[str, ...]:
    """Set all global generators from plain values; returns the devices whose generators are not there. An empty state
    leaves them as they are."""
    if not state:
        return ()
    np.random.set_state(state["numpy"])
    random.setstate(_unpacked(state["python"]))
    if "paddle" not in state:
        return ()
    paddle = paddle_side()
    return tuple(state["paddle"]) if paddle is None else tuple(paddle.randomness.give(state["paddle"]))


def paddle_side() -> Any:
    """Return the part of this package that knows paddle; None where the process has not imported paddle."""
    global _paddle_side
    if _paddle_side is not None or "paddle" not in sys.modules:
        return _paddle_side
    from jupyter_paddle_gpu.checkpoint import capture
    from jupyter_paddle_gpu.checkpoint.capture import inventory, picture, randomness, restoring  # noqa: F401  # loads

    _paddle_side = capture
    return capture


_paddle_side: Any = None


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
