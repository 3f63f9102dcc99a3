"""The ranks of one training, seen from one of them: who wishes a snapshot gets it from all, together."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.checkpoint.ranks.board import Board, gone, home
from jupyter_paddle_gpu.checkpoint.ranks.following import Follower
from jupyter_paddle_gpu.checkpoint.ranks.leading import Leader
from jupyter_paddle_gpu.checkpoint.ranks.turn import GIVES_WAY, SLACK_S, STAYS, named
from jupyter_paddle_gpu.core.errors import PaddleGpuError, SnapshotError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.ranks import Answer, Call, Terms, Wish, World, ends, gather_s, most_urgent
from jupyter_paddle_gpu.core.snapshot import Served, Snapshot
from jupyter_paddle_gpu.kernel.wishes import Then, Wishes

if TYPE_CHECKING:
    from jupyter_paddle_gpu.checkpoint.draft import Draft
    from jupyter_paddle_gpu.checkpoint.ranks.meeting import Meeting
    from jupyter_paddle_gpu.checkpoint.reports import Frozen
    from jupyter_paddle_gpu.kernel.protection import Protection

log = logging.getLogger(__name__)

PATIENCE_S = 20.0  # ranks come to guard.save() one after the other; gloo gives up a collective after 30 s
_IDLE_S, _GREETING_S, _BUSY_S = 0.25, 0.05, 0.01  # between two looks at the board
_NOTICE_S = 2.0  # for a notice that came from another rank to be served here
_START_S = 120.0  # for all ranks to have come to their loop
_ALL = "All ranks call guard.install() with the same directory, on a disk that all see, and go through guard.steps."


def join(world: World, protection: Protection, notice: Callable[[EvictionNotice], None]) -> None:
    """Let one of several ranks save with the others from now on. Repeatable. Raises StoreUnwritable."""
    if protection.company is not None:
        protection.company.stop()
    protection.company = Company(world, protection, notice)
    protection.use(protection.directory, protection.always_resume)
    protection.company.start()


class Company:
    """One per process of several ranks; its thread is the only one that saves. ``notice`` takes a notice that another
    rank has got."""

    def __init__(self, world: World, protection: Protection, notice: Callable[[EvictionNotice], None]) -> None:
        self.world = world
        self.fault = ""  # why the last turn failed
        self._protection = protection
        self._notice = notice
        self._wishes = Wishes()
        self._over = False
        self._served: dict[int, int] = {}  # the last wish of each other rank that is dealt with
        self._uncalled: tuple[int, Snapshot] | None = None  # a guard.save of others that ours has not joined yet
        self._uncalled_turn = False
        self._moves = 0  # of the gate, where all stood last
        self._wished = 0  # the last wish that rank 0 was told of
        self._ending = False  # the training ends with the turn that runs
        protection.store.prepare()
        board, nonce = Board(protection.directory, world), secrets.token_hex(8)
        self._leader = self._follower = None
        if world.main:
            self._leader = Leader(board, world, Call(nonce, home(), os.getpid()), self, self._pressing)
            self._leader.tell()
        else:
            answer = Answer(nonce, home(), os.getpid())
            self._follower = Follower(board, world, answer, self, protection.directory)

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

    def choose(self, name: str) -> None:
        """Rank 0 says which snapshot all go on from (empty: none), once all have come to hear it. Raises
        SnapshotError with who has not."""
        assert self._leader is not None, "rank 0 chooses"  # noqa: S101  # a fault of ours
        for _ in self._starting():
            missing = sorted(set(range(1, self.world.size)) - set(self._leader.answers()))
            if not missing:
                self._leader.tell(restored=name)
                return
        raise SnapshotError(f"{named(missing)} did not come to save and restore with rank 0", _ALL)

    def chosen(self) -> str:
        """Return what rank 0 has chosen, waited for. Raises SnapshotError where it does not say."""
        assert self._follower is not None, "rank 0 chooses"  # noqa: S101  # a fault of ours
        for _ in self._starting():
            call = self._follower.call()
            if call is not None and call.restored is not None:
                return call.restored
            if call is not None and gone(call):
                break
        raise SnapshotError("Rank 0 did not say which snapshot the ranks go on from", _ALL)

    @staticmethod
    def _starting() -> Iterator[None]:
        """Yield while ranks may still be starting."""
        end_s = time.monotonic() + _START_S
        while time.monotonic() < end_s:
            yield
            time.sleep(_GREETING_S)

    # The thread

    def _run(self) -> None:
        while not self._over:
            try:
                pause_s = self._lead() if self._leader is not None else self._follow()
            except PaddleGpuError as error:
                self._failed(error)
                pause_s = _BUSY_S
            except Exception as error:
                fault = SnapshotError(f"{type(error).__name__}: {error}", STAYS)
                if str(fault) != self.fault:
                    log.exception("The ranks could not save together")
                self._failed(fault)
                pause_s = _IDLE_S
            self._wishes.pause(pause_s, whatever=pause_s <= _BUSY_S)

    def _lead(self) -> float:
        """Lead a turn if somebody wishes one; returns the seconds until the next look."""
        assert self._leader is not None, "rank 0"  # noqa: S101  # a fault of ours
        answers = self._leader.answers()
        wishes = {
            rank: answer.wish
            for rank, answer in answers.items()
            if answer.wish is not None and answer.wish.number > self._served.get(rank, 0)
        }
        theirs = [wish for wish in wishes.values() if ends(wish.cause)]
        if theirs:
            self._give_notice(theirs[0].cause, min(wish.remaining_s for wish in theirs))
        own = [asked.terms for asked in self._wishes.pending()]
        terms = own + [Terms(wish.cause, PATIENCE_S, wish.remaining_s) for wish in wishes.values()]
        if not terms:
            return _IDLE_S if len(answers) == self.world.size - 1 else _GREETING_S
        self._served |= {rank: wish.number for rank, wish in wishes.items()}
        cause = most_urgent(term.cause for term in terms)
        chosen = next(term for term in terms if term.cause is cause)
        self._ending = ends(cause)
        if self._protection.not_yet_restored() is not None:
            raise SnapshotError("rank 0 has not restored yet what it goes on from", STAYS)
        self._succeeded(self._leader.lead(chosen))
        return _BUSY_S

    def _follow(self) -> float:
        """Take part in a turn if rank 0 calls one, and tell it what is wished here."""
        assert self._follower is not None, "not rank 0"  # noqa: S101  # a fault of ours
        call = self._follower.called()
        if call is not None:
            self._ending = ends(call.cause)
            if self._ending:
                self._give_notice(call.cause, call.remaining_s)
            if self._protection.not_yet_restored() is not None:
                self._follower.refuse(call, "the snapshot that it goes on from is not restored yet")
                return _BUSY_S
            name = self._follower.follow(call)
            self._succeeded(self._protection.store.find(name))
            return _BUSY_S
        pending = self._wishes.pending()
        now_s = time.monotonic()
        rank_0 = self._follower.call()
        if pending and ((rank_0 is not None and gone(rank_0)) or now_s > min(asked.end_s for asked in pending)):
            self._ending = True
            raise SnapshotError("rank 0 does not answer, or has ended", STAYS)
        first = min(pending, key=lambda asked: not asked.ends, default=None)
        remaining_s = max(0.001, first.end_s - now_s) if first is not None and first.ends else 0.0
        if first is None:
            self._follower.tell(wish=None)
        elif self._wished != first.number:
            self._wished = first.number
            self._follower.tell(wish=Wish(first.number, first.terms.cause, remaining_s))
        return _BUSY_S if pending else _IDLE_S if rank_0 is not None else _GREETING_S

    def _give_notice(self, cause: Cause, remaining_s: float) -> None:
        """Another rank has a notice: it is ours too. Wait until it is served here."""
        if not self._wishes.ending():
            self._notice(EvictionNotice(cause, remaining_s or PATIENCE_S))
            self._wishes.wait_for_ending(_NOTICE_S)

    def _pressing(self, terms: Terms) -> bool:
        return not ends(terms.cause) and self._wishes.ending()

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
