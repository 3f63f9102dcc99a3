"""Any rank but 0 in its company: it tells rank 0 what it wishes, and takes part in the turns."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_paddle_gpu.checkpoint.ranks.board import Board, gone, home
from jupyter_paddle_gpu.checkpoint.ranks.following import Follower
from jupyter_paddle_gpu.checkpoint.ranks.turn import STAYS
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.ranks import Answer, Call, Wish, World, ends
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.kernel.company.company import ALL, BUSY_S, GREETING_S, IDLE_S, Company, while_starting
from jupyter_paddle_gpu.kernel.protection import Protection


class Following(Company):
    """See Company."""

    def __init__(self, world: World, protection: Protection, notice: Callable[[EvictionNotice], None]) -> None:
        super().__init__(world, protection, notice)
        self._wished = 0  # the last wish that rank 0 was told of
        answer = Answer(secrets.token_hex(8), home(), os.getpid())
        self._follower = Follower(Board(protection.directory, world), world, answer, self, protection.directory)

    def go_on_from(self, due: Snapshot | None) -> Snapshot | None:
        """See Company: what rank 0 has restored, waited for."""
        for _ in while_starting():
            call = self._follower.call()
            if call is not None and call.restored is not None:
                return self._protection.store.find(call.restored) if call.restored else None
            if call is not None and gone(call):
                break
        raise SnapshotError("Rank 0 did not say which snapshot the ranks go on from", ALL)

    def restored(self, name: str) -> None:
        """See Company: rank 0 has chosen it."""

    def _look(self) -> float:
        call = self._follower.called()
        if call is not None:
            self._follow(call)
            return BUSY_S
        pending, rank_0 = self._wishes.pending(), self._follower.call()
        late = any(time.monotonic() > asked.end_s for asked in pending)
        if pending and (late or (rank_0 is not None and gone(rank_0))):
            self._ending = True
            raise SnapshotError("rank 0 does not answer, or has ended", STAYS)
        self._tell_wish()
        return BUSY_S if pending else IDLE_S if rank_0 is not None else GREETING_S

    def _follow(self, call: Call) -> None:
        self._ending = ends(call.cause)
        if self._ending:
            self._give_notice(call.cause, call.remaining_s)
        if self._protection.not_yet_restored() is not None:
            self._follower.refuse(call, "the snapshot that it goes on from is not restored yet")
        else:
            self._succeeded(self._protection.store.find(self._follower.follow(call)))

    def agreed(self, cause: Cause) -> Callable[[Path], None] | None:
        """See Trainee. What this turn takes is wished no more, before rank 0 looks again: it would lead another one."""
        then = super().agreed(cause)
        self._tell_wish()
        return then

    def _tell_wish(self) -> None:
        """Tell rank 0 of the most pressing wish, once, or that there is none any more."""
        first = min(self._wishes.pending(), key=lambda asked: not asked.ends, default=None)
        if first is None:
            self._follower.tell(wish=None)
        elif self._wished != first.number:
            self._wished = first.number
            remaining_s = max(0.001, first.end_s - time.monotonic()) if first.ends else 0.0
            self._follower.tell(wish=Wish(first.number, first.terms.cause, remaining_s))
