"""The last hour of readings, bounded in number whatever happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_paddle_gpu.core.telemetry import Reading

HISTORY_S = 3600.0
WATCHED_PERIOD_S = 1.0
SHORTEST_S = 0.9 * WATCHED_PERIOD_S  # a clock that is being set right may go a little slower
UNWATCHED_PERIOD_S = 10.0  # nobody looks: enough for a line of the last hour


@dataclass(frozen=True)
class Numbered:
    """A reading with its place in the stream, over all rings: who has seen ``number`` goes on after it."""

    number: int
    reading: Reading


class Ring:
    """Keeps ``HISTORY_S`` of readings, no closer than ``SHORTEST_S`` but for the newest. Not for several threads."""

    def __init__(self) -> None:
        self._kept: deque[Numbered] = deque()

    def add(self, number: int, reading: Reading) -> None:
        """Keep a reading under a number higher than all before; what is older than the history goes.

        So does the reading before where it came too soon to be kept, and what lies ahead since a clock was set back.
        """
        kept, at_s = self._kept, reading.at_s
        while kept and kept[-1].reading.at_s >= at_s:
            kept.pop()
        if len(kept) > 1 and kept[-1].reading.at_s - kept[-2].reading.at_s < SHORTEST_S:
            kept.pop()
        kept.append(Numbered(number, reading))
        while kept[0].reading.at_s < at_s - HISTORY_S:
            kept.popleft()

    def after(self, number: int = 0) -> Sequence[Numbered]:
        """Return what came after ``number``, the oldest first."""
        return [numbered for numbered in self._kept if numbered.number > number]
