"""One eviction: its deadline, who was told, and what was answered. No I/O; times are seconds of the caller's clock."""

from __future__ import annotations

import dataclasses

from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import Served

# The answer that counts, if several processes of one kernel have answered.
_WEIGHT = {SaveOutcome.SAVED: 2, SaveOutcome.FAILED: 1, SaveOutcome.NOTHING: 0}


class Eviction:
    """Begins with the first notice; a later one can only shorten it."""

    def __init__(self, notice: EvictionNotice, now_s: float) -> None:
        self.notice = notice
        self.deadline_s = now_s + max(0.0, notice.remaining_s)
        self._answers: dict[object, Served | None] = {}

    def shorten(self, notice: EvictionNotice, now_s: float) -> bool:
        """Take a further notice in; return whether it leaves less time than there was."""
        deadline_s = now_s + max(0.0, notice.remaining_s)
        if deadline_s >= self.deadline_s:
            return False
        self.deadline_s = deadline_s
        return True

    def remaining_s(self, now_s: float) -> float:
        return max(0.0, self.deadline_s - now_s)

    def current(self, now_s: float) -> EvictionNotice:
        """Return the notice as it must be told now."""
        return dataclasses.replace(self.notice, remaining_s=self.remaining_s(now_s))

    def told(self, who: object) -> None:
        """``who`` serves notices and was told this one."""
        self._answers.setdefault(who, None)

    def answered(self, who: object, served: Served) -> None:
        self._answers[who] = served

    def gone(self, who: object) -> None:
        """``who`` will not answer any more."""
        if who in self._answers and self._answers[who] is None:
            del self._answers[who]

    @property
    def anybody_told(self) -> bool:
        return bool(self._answers)

    @property
    def waiting(self) -> list[object]:
        """Those who were told and have not answered yet."""
        return [who for who, served in self._answers.items() if served is None]

    @property
    def all_answered(self) -> bool:
        """Whether somebody was told, and everybody who was has answered."""
        return self.anybody_told and not self.waiting

    @property
    def answer(self) -> Served | None:
        """The answer that counts so far."""
        answers = [served for served in self._answers.values() if served is not None]
        return max(answers, key=lambda served: _WEIGHT[served.outcome], default=None)
