"""What both sides of a turn share: what is asked for, how long it may take, and how one waits for the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from jupyter_paddle_gpu.checkpoint.draft import Draft
from jupyter_paddle_gpu.checkpoint.ranks.meeting import Meeting
from jupyter_paddle_gpu.checkpoint.reports import Frozen
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.ranks import Terms

LOOK_S = 0.01  # between two looks at the board while a turn runs
SILENCE_S = 600.0  # a rank without a sign for so long counts as gone; the disk may have much to do meanwhile
SETTLE_S = 10.0
SLACK_S = 2.0  # for the slowest rank to hear that others have given up
BEAT_S = 2.0  # between two signs while a rank writes
GIVES_WAY = "A notice came in between"
STAYS = "The previous snapshot stays the newest."


class Trainee(Protocol):
    """The training of this rank, as a turn needs it."""

    def frozen(self, patience_s: float, meet: Meeting) -> AbstractContextManager[Frozen]:
        """See Training.frozen."""

    def write(self, frozen: Frozen, cause: Cause, tell: Callable[[int], None]) -> Draft:
        """Begin a snapshot of rank 0's state."""

    def saved(self, updates: int) -> None:
        """The state after this many updates is in a snapshot."""

    def agreed(self, cause: Cause) -> Callable[[Path], None] | None:
        """All stand at one place: whoever has asked for a snapshot before this gets this one. What is returned is
        called with its path while the training stands still (None: it goes on once its memory is not needed)."""

    def stands(self) -> bool:
        """See Training.stands."""

    @property
    def updates(self) -> int:
        """How many updates this process has made."""


class Watch:
    """The time of a turn: when it must be over, when its stage must, and when the others have last given a sign."""

    def __init__(self, terms: Terms) -> None:
        now_s = time.monotonic()
        self._end_s = now_s + terms.remaining_s if terms.remaining_s else None
        self._meet_s = terms.patience_s + SLACK_S
        self._begin(None)

    def meeting(self) -> None:
        """From now on the ranks have the patience of the turn to come."""
        self._begin(self._meet_s)

    def working(self) -> None:
        """From now on they have as long as they give signs."""
        self._begin(None)

    def _begin(self, limit_s: float | None) -> None:
        self._signs: object = None
        self._begun_s = self._sign_s = time.monotonic()
        self._limit_s = limit_s

    def settle_s(self) -> float:
        """Return how long ranks that end may wait for one another."""
        left_s = SETTLE_S if self._end_s is None else self._end_s - time.monotonic()
        return min(SETTLE_S, max(0.0, left_s / 2))

    def look(self, signs: object, missing: str) -> None:
        """Wait a little. ``signs``: what the others say now; ``missing`` names who is waited for. Raises SnapshotError
        when that takes too long."""
        now_s = time.monotonic()
        if signs != self._signs:
            self._signs, self._sign_s = signs, now_s
        late = self._limit_s is not None and now_s - self._begun_s > self._limit_s
        if late or (self._end_s is not None and now_s > self._end_s) or now_s - self._sign_s > SILENCE_S:
            raise SnapshotError(f"{missing} did not come in {now_s - self._begun_s:.0f} s", STAYS)
        time.sleep(LOOK_S)


def settle(trainee: Trainee, watch: Watch) -> None:
    """Let this rank's training run up to its next update, for a share of the time that is left: a rank that ends while
    another one waits for its part of a step makes that one fail."""
    end_s = time.monotonic() + watch.settle_s()
    while not trainee.stands() and time.monotonic() < end_s:
        time.sleep(LOOK_S)


class Beat:
    """Gives a sign now and then while this rank works."""

    def __init__(self, sign: Callable[[], None]) -> None:
        self._sign = sign
        self._next_s = time.monotonic() + BEAT_S

    def __call__(self, written: int) -> None:
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + BEAT_S
            self._sign()


def named(ranks: list[int]) -> str:
    """Return ``rank 1`` or ``ranks 1, 3``."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
