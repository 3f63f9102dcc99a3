"""What every rank does in its company: who wishes a snapshot waits for it, and a thread makes it with the others."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.checkpoint.ranks.turn import GIVES_WAY, SLACK_S, STAYS
from jupyter_paddle_gpu.core.errors import PaddleGpuError, SnapshotError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.ranks import Terms, World, ends, gather_s
from jupyter_paddle_gpu.core.snapshot import Served, Snapshot
from jupyter_paddle_gpu.kernel.company.wishes import Then, Wishes
from jupyter_paddle_gpu.kernel.protection import RANKS_PATIENCE_S, Protection

if TYPE_CHECKING:
    from jupyter_paddle_gpu.checkpoint.draft import Draft
    from jupyter_paddle_gpu.checkpoint.ranks.meeting import Meeting
    from jupyter_paddle_gpu.checkpoint.reports import Frozen

log = logging.getLogger(__name__)

IDLE_S, GREETING_S, BUSY_S = 0.25, 0.05, 0.01  # between two looks at the board
_NOTICE_S = 2.0  # for a notice that came from another rank to be served here
_START_S = 120.0  # for all ranks to have come to their loop
ALL = "All ranks call guard.install() with the same directory, on a disk that all see, and go through guard.steps."


def while_starting() -> Iterator[None]:
    """Yield while ranks may still be starting."""
    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s:
        yield
        time.sleep(GREETING_S)


class Company(ABC):
    """One per process of several ranks; its thread is the only one that saves. ``notice`` takes a notice that another
    rank has got."""

    def __init__(self, world: World, protection: Protection, notice: Callable[[EvictionNotice], None]) -> None:
        self.world = world
        self.fault = ""  # why the last turn failed
        self._protection = protection
        self._notice = notice
        self._wishes = Wishes()
        self._over = False
        self._uncalled: tuple[int, Snapshot] | None = None  # a guard.save of others that ours has not joined yet
        self._uncalled_turn = False
        self._moves = 0  # of the gate, where all stood last
        self._ending = False  # the training ends with the turn that runs
        protection.store.prepare()

    def start(self) -> None:
        """Look at the board from now on, in a thread, until ``stop``."""
        threading.Thread(target=self._run, name="paddle-gpu-ranks", daemon=True).start()

    def stop(self) -> None:
        """Take part in no turn any more. Repeatable."""
        self._over = True

    # For whoever wants a snapshot

    def save(self, terms: Terms, then: Then | None = None) -> Snapshot:
        """Return a snapshot of all ranks, made from now on; ``then`` is called with it while this rank stands still.

        Raises SnapshotError with the rank that did not come, StoreUnwritable.
        """
        with self._protection.training.waiting():
            if terms.cause is Cause.MANUAL and (made := self._join_late()) is not None:
                return made
            try:
                return self._wishes.ask(terms, terms.remaining_s or terms.patience_s + SLACK_S, then)
            except SnapshotError as error:
                if terms.cause is not Cause.MANUAL or type(error) is not SnapshotError:
                    raise
                hint = "Every rank calls guard.save(), at the same step."
                raise SnapshotError(error.fault, f"{error.next_step} {hint}") from None

    def save_for(
        self,
        notice: EvictionNotice,
        remaining_s: float,
        leave: Callable[[Snapshot], Served],
        then: Callable[[Served], None],
    ) -> Served:
        """Save for a notice that all ranks have, or not at all, in time to say so; ``leave`` and ``then`` are called
        while this rank stands still. Raises as ``save`` does."""
        served: list[Served] = []

        def told(snapshot: Snapshot) -> None:
            served.append(leave(snapshot))
            then(served[0])

        left_s = 0.9 * remaining_s - min(1.0, 0.2 * remaining_s)  # see eviction: the rest is for telling
        self.save(Terms(notice.cause, gather_s(left_s, self._protection.estimate().seconds), left_s), told)
        return served[0]

    def _join_late(self) -> Snapshot | None:
        """Return the snapshot of a guard.save() of others that was made at this very place, before ours came."""
        uncalled, self._uncalled = self._uncalled, None
        if uncalled is not None and uncalled[0] == self._protection.training.gate.moves:
            return uncalled[1]
        return None

    # For the snapshot that all go on from

    @abstractmethod
    def go_on_from(self, due: Snapshot | None) -> Snapshot | None:
        """Return what all ranks go on from (None: nothing) where it is ``due`` for this one.

        Raises SnapshotError with who has not come to agree on it.
        """

    @abstractmethod
    def restored(self, name: str) -> None:
        """This rank goes on from the snapshot of this name (empty: from none). Raises as ``go_on_from``."""

    # The thread

    @abstractmethod
    def _look(self) -> float:
        """Look at the board, and make a snapshot with the others if one is wished; return the seconds until the next
        look. Raises SnapshotError where the turn has failed."""

    def _run(self) -> None:
        while not self._over:
            try:
                pause_s = self._look()
            except PaddleGpuError as error:
                self._failed(error)
                pause_s = BUSY_S
            except Exception as error:
                fault = SnapshotError(f"{type(error).__name__}: {error}", STAYS)
                if str(fault) != self.fault:
                    log.exception("The ranks could not save together")
                self._failed(fault)
                pause_s = IDLE_S
            self._wishes.pause(pause_s, whatever=pause_s <= BUSY_S)

    def _give_notice(self, cause: Cause, remaining_s: float) -> None:
        """Another rank has a notice: it is ours too. Wait until it is served here."""
        if not self._wishes.ending():
            self._notice(EvictionNotice(cause, remaining_s or RANKS_PATIENCE_S))
            self._wishes.wait_for_ending(_NOTICE_S)

    def _succeeded(self, snapshot: Snapshot) -> None:
        self.fault = ""
        if self._uncalled_turn:
            self._uncalled, self._uncalled_turn = (self._moves, snapshot), False
        self._wishes.grant(snapshot)

    def _failed(self, error: PaddleGpuError) -> None:
        """Tell who waited for this turn; who only had to give way to a notice gets the snapshot of that."""
        if not str(error).startswith(GIVES_WAY):
            self.fault = str(error)
            self._wishes.fail(error, self._ending)

    # What a turn needs of this rank

    def frozen(self, patience_s: float, meet: Meeting) -> AbstractContextManager[Frozen]:
        return self._protection.training.frozen(patience_s, meet)

    def write(self, frozen: Frozen, cause: Cause, tell: Callable[[int], None]) -> Draft:
        return self._protection.begin(frozen, cause, tell)

    def saved(self, updates: int) -> None:
        self._protection.saved(updates)

    def stands(self) -> bool:
        return self._protection.training.stands()

    @property
    def updates(self) -> int:
        return self._protection.training.updates

    def agreed(self, cause: Cause) -> Callable[[Path], None] | None:
        taken = self._wishes.take(ends(cause))
        self._moves = self._protection.training.gate.moves
        self._uncalled_turn = cause is Cause.MANUAL and not any(asked.terms.cause is cause for asked in taken)
        thens = [asked.then for asked in taken if asked.then is not None]
        if not thens:
            return None

        def then(path: Path) -> None:
            for each in thens:
                each(self._protection.store.find(path.name))

        return then
