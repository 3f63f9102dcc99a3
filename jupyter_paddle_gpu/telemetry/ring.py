"""The last hour of readings, bounded in number whatever happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_paddle_gpu.core.telemetry import Reading

HISTORY_S = 3600.0
WATCHED_PERIOD_S = 1.0
UNWATCHED_PERIOD_S = 10.0  # nobody looks: enough for a line of the last hour


@dataclass(frozen=True)
class Numbered:
    """A reading with its place in the stream, over all rings: who has seen ``number`` goes on after it."""

    number: int
    reading: Reading


class Ring:
    """Keeps ``HISTORY_S`` of readings. Not for several threads."""

    def __init__(self) -> None:
        self._kept: deque[Numbered] = deque(maxlen=int(HISTORY_S / WATCHED_PERIOD_S))

    def add(self, number: int, reading: Reading) -> None:
        """Keep a reading under a number higher than all before; what is older than the history goes."""
        self._kept.append(Numbered(number, reading))
        while self._kept[0].reading.at_s < reading.at_s - HISTORY_S:
            self._kept.popleft()

    def after(self, number: int = 0) -> Sequence[Numbered]:
        """Return what came after ``number``, the oldest first."""
        return [numbered for numbered in self._kept if numbered.number > number]
