"""Who in this process waits for a snapshot of all ranks, and what becomes of it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.core.ranks import Terms, ends
from jupyter_paddle_gpu.core.snapshot import Snapshot

Then = Callable[[Snapshot], None]


@dataclass
class Asked:
    """Somebody waits for a snapshot, made on these terms; ``then`` is called with it while this rank stands still.
    ``end_s``: until when rank 0 has to call, on the monotonic clock."""

    number: int
    terms: Terms
    then: Then | None
    end_s: float
    done: threading.Event = field(default_factory=threading.Event)
    snapshot: Snapshot | None = None
    error: Exception | None = None

    @property
    def ends(self) -> bool:
        return ends(self.terms.cause)


class Wishes:
    """One per process. A turn takes what was asked for before all stood still; the others stay for the next one."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._asked: list[Asked] = []
        self._taken: list[Asked] = []
        self._news = threading.Condition()

    def ask(self, terms: Terms, within_s: float, then: Then | None) -> Snapshot:
        """Wait for a snapshot that is made from now on. Raises what ``fail`` is given."""
        asked = Asked(next(self._numbers), terms, then, time.monotonic() + within_s)
        with self._news:
            self._asked.append(asked)
            self._news.notify_all()
        asked.done.wait()
        if asked.error is not None:
            raise asked.error
        assert asked.snapshot is not None, "done"  # noqa: S101  # a fault of ours
        return asked.snapshot

    def pending(self) -> list[Asked]:
        """Return who waits for a turn."""
        with self._news:
            return list(self._asked)

    def ending(self) -> bool:
        """Whether somebody waits who ends the training then."""
        return any(asked.ends for asked in self.pending())

    def wait_for_ending(self, timeout_s: float) -> None:
        """Wait for such a one."""
        with self._news:
            self._news.wait_for(lambda: any(asked.ends for asked in self._asked), timeout_s)

    def pause(self, seconds: float, whatever: bool) -> None:
        """Wait until somebody asks; not at all where somebody has, unless ``whatever``."""
        with self._news:
            if whatever or not self._asked:
                self._news.wait(seconds)

    def take(self, ending: bool) -> list[Asked]:
        """All stand still: return who gets the snapshot. Who ends then, wants one that ends all ranks."""
        with self._news:
            self._taken = [asked for asked in self._asked if ending or not asked.ends]
            self._asked = [asked for asked in self._asked if asked not in self._taken]
            return list(self._taken)

    def grant(self, snapshot: Snapshot) -> None:
        """Give it to who was taken."""
        taken, self._taken = self._taken, []
        for asked in taken:
            asked.snapshot = snapshot
            asked.done.set()

    def fail(self, error: PaddleGpuError, ending: bool) -> None:
        """Tell who was taken and who waits: but who ends the training waits on, if it was no turn that does."""
        with self._news:
            failed = [*self._taken, *(asked for asked in self._asked if ending or not asked.ends)]
            self._asked = [asked for asked in self._asked if asked not in failed]
            self._taken = []
        for asked in failed:
            asked.error = error
            asked.done.set()
