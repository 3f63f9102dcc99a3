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
    """A reading with its place in the stream, from 1 on: who has seen ``number`` goes on after it."""

    number: int
    reading: Reading


class Ring:
    """Keeps ``HISTORY_S`` of readings. Not for several threads."""

    def __init__(self) -> None:
        self._kept: deque[Numbered] = deque(maxlen=int(HISTORY_S / WATCHED_PERIOD_S))
        self._number = 0

    def add(self, reading: Reading) -> Numbered:
        """Keep a reading and return it with its number; what is older than the history goes."""
        self._number += 1
        numbered = Numbered(self._number, reading)
        self._kept.append(numbered)
        while self._kept[0].reading.at_s < reading.at_s - HISTORY_S:
            self._kept.popleft()
        return numbered

    def after(self, number: int = 0) -> Sequence[Numbered]:
        """Return what came after ``number``; 0, or a number of another ring that this one never gave: all there is."""
        if number > self._number:
            number = 0
        return [numbered for numbered in self._kept if numbered.number > number]
