"""Says how far a long save is, in the cell that asked for it."""

from __future__ import annotations

import sys
import time

from jupyter_paddle_gpu.core.units import format_duration, format_size

_QUIET_S = 2.0  # a save that ends before that needs no words
_EVERY_S = 1.0


class Progress:
    """``total`` is the state's size in bytes; ``show`` is called with the bytes written so far."""

    def __init__(self, total: int) -> None:
        self._total = max(1, total)
        self._begun_s = time.monotonic()
        self._next_s = self._begun_s + _QUIET_S

    def show(self, written: int) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _EVERY_S
        done = min(1.0, written / self._total)
        left_s = (now_s - self._begun_s) * (1 - done) / max(done, 0.001)
        text = f"saved {format_size(written)} of {format_size(self._total)}, {format_duration(left_s)} left"
        print(f"paddle-gpu: {text}", file=sys.stderr, flush=True)
