"""Says how far a long save or restore is: a bar that moves in a notebook and a terminal, lines in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jupyter_paddle_gpu.core.units import format_duration, format_size
from jupyter_paddle_gpu.language import translated

_QUIET_S = 1.0  # what ends before that needs no words
_EVERY_S = 0.2
_LINE_EVERY_S = 5.0
_WIDTH = 24


class Progress:
    """``done`` is what is said of the bytes: "saved", "read"; ``total`` their number.

    ``show`` is called with the bytes so far, ``end`` when there will be no more.
    """

    def __init__(self, done: str, total: int) -> None:
        self._done = done
        self._total = total
        self._begun_s = time.monotonic()
        self._next_s = self._begun_s + _QUIET_S
        self._moves = _can_move()
        self._drawn = 0

    def show(self, nbytes: int) -> None:
        """Draw the bar, if it is time."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + (_EVERY_S if self._moves else _LINE_EVERY_S)
        text = bar(self._done, nbytes, self._total, now_s - self._begun_s)
        line = f"\r{text.ljust(self._drawn)}" if self._moves else f"{text}\n"
        print(line, end="", file=sys.stderr, flush=True)
        self._drawn = len(text)

    def end(self) -> None:
        """Leave the line of the bar. May be repeated."""
        if self._drawn and self._moves:
            print(file=sys.stderr, flush=True)
        self._drawn = 0


@contextmanager
def progress(done: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give what is to be called with the bytes so far; see Progress. Nothing is drawn outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda nbytes: None
        return
    drawn = Progress(done, total)
    try:
        yield drawn.show
    finally:
        drawn.end()


def _can_move() -> bool:
    """Whether what is written can be written over: in a terminal, and in the output of a cell."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")


def bar(done: str, nbytes: int, total: int, seconds: float) -> str:
    """Return the line: how much of it, and how long it will take."""
    share = min(1.0, nbytes / max(1, total))
    filled = round(share * _WIDTH)
    left_s = seconds * (1 - share) / max(share, 0.001)
    return translated(
        f"paddle-gpu: [{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%} of {format_size(total)} {done}, "
        f"{format_duration(left_s)} left"
    )
