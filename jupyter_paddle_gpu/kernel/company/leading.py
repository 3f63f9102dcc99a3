"""Rank 0 in its company: it hears what the others wish, and leads the turns."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

from jupyter_paddle_gpu.checkpoint.ranks.board import Board, home
from jupyter_paddle_gpu.checkpoint.ranks.leading import Leader
from jupyter_paddle_gpu.checkpoint.ranks.turn import STAYS, named
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.ranks import Answer, Call, Terms, Wish, World, ends, most_urgent
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.kernel.company.company import (
    ALL,
    BUSY_S,
    GREETING_S,
    IDLE_S,
    Company,
    while_starting,
)
from jupyter_paddle_gpu.kernel.protection import RANKS_PATIENCE_S, Protection


class Leading(Company):
    """See Company."""

    def __init__(self, world: World, protection: Protection, notice: Callable[[EvictionNotice], None]) -> None:
        super().__init__(world, protection, notice)
        self._served: dict[int, int] = {}  # the last wish of each other rank that is dealt with
        call = Call(secrets.token_hex(8), home(), os.getpid())
        self._leader = Leader(Board(protection.directory, world), world, call, self, self._pressing)
        self._leader.tell()

    def go_on_from(self, due: Snapshot | None) -> Snapshot | None:
        """See Company. What is due is told when it is restored: it may prove broken."""
        if due is None:
            self.restored("")
        return due

    def restored(self, name: str) -> None:
        """See Company."""
        for _ in while_starting():
            missing = sorted(set(range(1, self.world.size)) - set(self._leader.answers()))
            if not missing:
                self._leader.tell(restored=name)
                return
        raise SnapshotError(f"{named(missing)} did not come to save and restore with rank 0", ALL)

    def _look(self) -> float:
        answers = self._leader.answers()
        wishes = self._unserved(answers)
        notices = [wish for wish in wishes.values() if ends(wish.cause)]
        if notices:
            self._give_notice(notices[0].cause, min(wish.remaining_s for wish in notices))
        own = [asked.terms for asked in self._wishes.pending()]
        terms = own + [Terms(wish.cause, RANKS_PATIENCE_S, wish.remaining_s) for wish in wishes.values()]
        if not terms:
            return IDLE_S if len(answers) == self.world.size - 1 else GREETING_S
        self._served |= {rank: wish.number for rank, wish in wishes.items()}
        self._lead(terms)
        return BUSY_S

    def _unserved(self, answers: dict[int, Answer]) -> dict[int, Wish]:
        return {
            rank: answer.wish
            for rank, answer in answers.items()
            if answer.wish is not None and answer.wish.number > self._served.get(rank, 0)
        }

    def _lead(self, terms: list[Terms]) -> None:
        cause = most_urgent(term.cause for term in terms)
        self._ending = ends(cause)
        if self._protection.not_yet_restored() is not None:
            raise SnapshotError("rank 0 has not restored yet what it goes on from", STAYS)
        self._succeeded(self._leader.lead(next(term for term in terms if term.cause is cause)))

    def _pressing(self, terms: Terms) -> bool:
        return not ends(terms.cause) and self._wishes.ending()
