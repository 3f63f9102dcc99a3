"""The gate over the update: while somebody else holds it, parameters and optimizer state stand still."""

from __future__ import annotations

import threading
import time
from threading import get_ident
from typing import Any

FIRST = "_paddle_gpu_first"  # on an optimizer: the number of its first update, seen through the gate
LAST = "_paddle_gpu_last"  # the number of its last one


class Gate:
    """One per training. The thread that updates passes through ``enter`` and ``leave``; a save holds it meanwhile.

    ``moves`` counts every change of heavy state that is known: updates, and tensors set by hand. ``newcomers`` counts
    the optimizers that were seen for the first time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._ending: BaseException | None = None
        self.updates = 0
        self.moves = 0
        self.newcomers = 0

    def enter(self) -> bool:
        """Begin an update; False: this thread is inside one already, and does not leave for it.

        Raises what ``end`` was given.
        """
        me = get_ident()
        if self._owner == me:
            return False
        self._lock.acquire()
        if self._ending is not None:
            self._lock.release()
            raise self._ending
        self._owner = me
        return True

    def leave(self, optimizer: Any) -> None:
        """End the update that ``enter`` began."""
        number = self.updates = self.updates + 1
        self.moves += 1
        known = optimizer.__dict__
        if FIRST not in known:
            known[FIRST] = number
            self.newcomers += 1
        known[LAST] = number
        self._owner = 0
        self._lock.release()

    def inside(self) -> bool:
        """Whether the calling thread is in an update."""
        return self._owner == get_ident()

    def touch(self) -> None:
        """Heavy state is changed by hand, outside of an update."""
        if self._owner != get_ident():
            self.moves += 1

    def hold(self, timeout_s: float) -> bool:
        """Keep updates from beginning; False: one is still running after ``timeout_s``. May be let go by any thread."""
        return self._lock.acquire(timeout=max(0.0, timeout_s))

    def let_go(self) -> None:
        """Let updates go on."""
        self._lock.release()

    def end(self, exception: BaseException | None) -> None:
        """Let every later update raise this exception (None: none any more)."""
        self._ending = exception

    def check(self) -> None:
        """Raise what ``end`` was given."""
        if self._ending is not None:
            raise self._ending


class Deadline:
    """Time that runs out: ``patience_s`` from now."""

    def __init__(self, patience_s: float) -> None:
        self._end_s = time.monotonic() + patience_s

    def left_s(self) -> float:
        return max(0.0, self._end_s - time.monotonic())
