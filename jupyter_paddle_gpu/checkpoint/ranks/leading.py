"""Rank 0's side of a turn: it calls, waits until all stand at one place, writes its part, and makes it a snapshot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from jupyter_paddle_gpu.checkpoint.draft import Draft
from jupyter_paddle_gpu.checkpoint.pieces import crc32
from jupyter_paddle_gpu.checkpoint.ranks.board import Board, gone
from jupyter_paddle_gpu.checkpoint.ranks.meeting import Meeting
from jupyter_paddle_gpu.checkpoint.ranks.turn import GIVES_WAY, LOOK_S, STAYS, Beat, Trainee, Watch, named, settle
from jupyter_paddle_gpu.core.errors import PaddleGpuError, SnapshotError
from jupyter_paddle_gpu.core.ranks import (
    Answer,
    Answering,
    Call,
    Event,
    Part,
    Place,
    Stage,
    Terms,
    World,
    advance,
    meeting_place,
)
from jupyter_paddle_gpu.core.snapshot import Snapshot


class Leader:
    """One per process; one thread leads, any may tell. ``pressing``: whether a turn has to give way now."""

    def __init__(
        self, board: Board, world: World, call: Call, trainee: Trainee, pressing: Callable[[Terms], bool]
    ) -> None:
        self._board = board
        self._world = world
        self._trainee = trainee
        self._pressing = pressing
        self._call = call
        self._telling = threading.Lock()

    def tell(self, **changes: Any) -> None:
        """Change rank 0's note. Raises OSError."""
        with self._telling:
            self._call = replace(self._call, **changes)
            self._board.pin(self._call)

    def answers(self) -> dict[int, Answer]:
        """Return what the others of this run say; who is new is named in rank 0's note, so that it can trust it."""
        found = self._board.answers()
        nonces = {str(rank): answer.nonce for rank, answer in found.items()}
        if nonces != dict(self._call.ranks):
            self.tell(ranks=nonces)
        return {rank: answer for rank, answer in found.items() if answer.call == self._call.nonce}

    def lead(self, terms: Terms) -> Snapshot:
        """Make one snapshot of all ranks. Raises SnapshotError with who did not come, StoreUnwritable; all are told."""
        try:
            self.tell(
                turn=self._call.turn + 1,
                stage=advance(self._call.stage, Event.CALL),
                cause=terms.cause,
                patience_s=terms.patience_s,
                remaining_s=terms.remaining_s,
                place=Place(),
                fault="",
            )
            return self._lead(terms, Watch(terms))
        except BaseException as error:
            fault = str(error) if isinstance(error, PaddleGpuError) else f"{type(error).__name__}: {error}"
            if self._call.stage is not Stage.SAVED:
                self.tell(stage=advance(self._call.stage, Event.FAULT), fault=fault)
            raise

    def _lead(self, terms: Terms, watch: Watch) -> Snapshot:
        watch.meeting()
        self._wait(terms, watch, lambda answer: answer.state is not Answering.IDLE)
        self.tell(stage=advance(self._call.stage, Event.ALL_HEARD))
        watch.meeting()
        meet = Meeting(self._expect, partial(self._stand, terms, watch))
        with self._trainee.frozen(terms.patience_s, meet) as frozen:
            then = self._trainee.agreed(terms.cause)
            updates = self._trainee.updates
            draft = self._trainee.write(frozen, terms.cause, Beat(self._beat))
            with _or_discarded(draft):
                data = draft.write_contents()
                self.tell(
                    stage=advance(self._call.stage, Event.FIRST_WRITTEN),
                    draft=draft.path.name,
                    contents_nbytes=len(data),
                    contents_crc32=crc32(data),
                )
                if then is not None:
                    snapshot = self._commit(draft, terms, watch)
                    self._trainee.saved(updates)
                    self._farewell(watch)
                    then(snapshot.path)
                    return snapshot
        with _or_discarded(draft):
            snapshot = self._commit(draft, terms, watch)
        self._trainee.saved(updates)
        return snapshot

    def _commit(self, draft: Draft, terms: Terms, watch: Watch) -> Snapshot:
        answers = self._wait(terms, watch, lambda answer: answer.part is not None)
        parts: dict[int, Part] = {rank: answer.part for rank, answer in answers.items() if answer.part is not None}
        snapshot = draft.commit(parts)
        self.tell(stage=advance(self._call.stage, Event.ALL_WRITTEN))
        return snapshot

    def _farewell(self, watch: Watch) -> None:
        """Let all ranks hear that the snapshot is whole, and end their step: they may end now."""
        settle(self._trainee, watch)
        end_s = time.monotonic() + watch.settle_s()
        while time.monotonic() < end_s:
            if all(self._of_turn(answer) is Answering.ENDED for answer in self.answers().values()):
                return
            time.sleep(LOOK_S)

    def _expect(self, place: Place) -> None:
        """See Meeting."""
        if place > self._call.place:
            self.tell(place=place)

    def _stand(self, terms: Terms, watch: Watch, place: Place) -> Place:
        """See Meeting; with all at one place, it is agreed."""
        while True:
            answers = self._heard(terms)
            foremost = max(place, self._call.place)
            target, all_stand = meeting_place(foremost, answers, self._call.turn, self._world.size)
            if target != self._call.place:
                self.tell(place=target)
            if all_stand and target == place:
                watch.working()
                self.tell(stage=advance(self._call.stage, Event.ALL_STAND))
                return place
            if target > place:
                return target
            watch.look(answers, named(self._missing(answers, lambda answer: answer.state is Answering.STANDING)))

    def _wait(self, terms: Terms, watch: Watch, ready: Callable[[Answer], bool]) -> Mapping[int, Answer]:
        """Wait until all others' answers of this turn are ready."""
        while True:
            answers = self._heard(terms)
            missing = self._missing(answers, ready)
            if not missing:
                return answers
            watch.look(answers, named(missing))

    def _heard(self, terms: Terms) -> dict[int, Answer]:
        """Return the others' answers. Raises SnapshotError where one cannot take part any more."""
        answers = self.answers()
        for rank, answer in answers.items():
            if self._of_turn(answer) is Answering.FAULT:
                raise SnapshotError(f"rank {rank}: {answer.fault}", "" if STAYS in answer.fault else STAYS)
            if gone(answer) and not (answer.turn == self._call.turn and answer.part is not None):
                raise SnapshotError(f"rank {rank} has ended without its part", STAYS)
        if self._call.stage in (Stage.CALLED, Stage.GATHERING) and self._pressing(terms):
            raise SnapshotError(GIVES_WAY, "It is served first.")
        return answers

    def _of_turn(self, answer: Answer) -> Answering:
        return answer.state if answer.turn == self._call.turn else Answering.IDLE

    def _missing(self, answers: Mapping[int, Answer], ready: Callable[[Answer], bool]) -> list[int]:
        """Return the ranks whose answers of this turn are not ready."""
        done = {rank for rank, answer in answers.items() if answer.turn == self._call.turn and ready(answer)}
        return [rank for rank in range(1, self._world.size) if rank not in done]

    def _beat(self) -> None:
        self.tell(beat=self._call.beat + 1)


@contextmanager
def _or_discarded(draft: Draft) -> Iterator[None]:
    """Leave nothing of the draft where the block fails."""
    try:
        yield
    except BaseException:
        draft.discard()
        raise
