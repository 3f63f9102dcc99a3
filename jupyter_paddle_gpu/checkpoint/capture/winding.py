"""Paddle 2.6 can say where its CPU generator stands, and not put it there: it is wound forward from its seed instead.

The generator is std::mt19937_64. Its state is 312 words and the number of those that are used up; a new block of words
is made of the old one by Nishimura's recurrence (ACM TOMACS 10, 2000). Making blocks here until one equals the saved
block counts the numbers that were drawn since the seed; then as many are drawn. Paddle 3 needs none of this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

WORDS, _HALF = 312, 156
_UPPER, _LOWER = np.uint64(0xFFFFFFFF80000000), np.uint64(0x7FFFFFFF)
_MATRIX, _ONE = np.uint64(0xB5026F5AA96619E9), np.uint64(1)
_MOST_BLOCKS = 3_000_000  # some 10⁹ numbers, a minute of search
_MOST_AT_ONCE = 10_000_000


def engine_text(state: Any) -> str:
    """Return a CPU generator's words and the count of those used, as paddle 3 keeps them too."""
    return " ".join(str(state).split()[-WORDS - 1 :])


def wind(generator: Any, text: str) -> bool:
    """Draw from a generator that stands at its seed until it stands where ``text`` says; False: it is not reached."""
    target = np.array(text.split(), dtype=np.uint64)
    block = np.array(engine_text(generator.get_state()).split(), dtype=np.uint64)[:WORDS]
    drawn = int(target[WORDS]) - WORDS
    for _ in range(_MOST_BLOCKS):
        if block[0] == target[0] and np.array_equal(block, target[:WORDS]):
            break
        _make_next(block)
        drawn += WORDS
    else:
        return False
    _draw(drawn)
    return engine_text(generator.get_state()) == text


def _make_next(words: Any) -> None:
    """Replace a block by the one that follows, in the three stretches that do not depend on themselves."""
    _mix(words[:_HALF], words[1 : _HALF + 1], words[_HALF:])
    _mix(words[_HALF:-1], words[_HALF + 1 :], words[: _HALF - 1])
    _mix(words[-1:], words[:1], words[_HALF - 1 : _HALF])


def _mix(words: Any, following: Any, far: Any) -> None:
    mixed = (words & _UPPER) | (following & _LOWER)
    words[:] = far ^ (mixed >> _ONE) ^ ((mixed & _ONE) * _MATRIX)


def _draw(count: int) -> None:
    """A uniform number takes one word of the engine."""
    while count > 0:
        paddle.uniform([min(count, _MOST_AT_ONCE)])
        count -= _MOST_AT_ONCE
