"""The side of every rank but 0 in a turn: it hears, stands still where all do, and writes its part."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.checkpoint import contents, reader
from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.contents import Contents
from jupyter_paddle_gpu.checkpoint.ranks.board import Board, gone
from jupyter_paddle_gpu.checkpoint.ranks.meeting import Meeting
from jupyter_paddle_gpu.checkpoint.ranks.parts import PartDraft
from jupyter_paddle_gpu.checkpoint.ranks.turn import STAYS, Beat, Trainee, Watch, settle
from jupyter_paddle_gpu.checkpoint.reports import Frozen
from jupyter_paddle_gpu.core.errors import PaddleGpuError, SnapshotError
from jupyter_paddle_gpu.core.ranks import Answer, Answering, Call, Part, Place, Stage, Terms, World


class Follower:
    """One per process; one thread follows, any may tell. ``directory`` is where the snapshots are."""

    def __init__(self, board: Board, world: World, answer: Answer, trainee: Trainee, directory: Path) -> None:
        self._board = board
        self._world = world
        self._answer = answer
        self._trainee = trainee
        self._directory = directory
        self._telling = threading.Lock()
        board.pin(answer)

    def tell(self, **changes: Any) -> None:
        """Change this rank's note. Raises OSError."""
        with self._telling:
            answer = replace(self._answer, **changes)
            if answer != self._answer:
                self._answer = answer
                self._board.pin(answer)

    def call(self) -> Call | None:
        """Return what rank 0 of this run says; None: nothing yet. It learns by our note that we have seen it."""
        call = self._board.call()
        if call is None:
            return None
        if not gone(call):
            self.tell(call=call.nonce)
        return call if call.ranks.get(str(self._world.rank)) == self._answer.nonce else None

    def called(self) -> Call | None:
        """Return rank 0's call that this rank has not answered yet; None: there is none."""
        call = self.call()
        return call if call is not None and call.stage is Stage.CALLED and call.turn != self._answer.turn else None

    def refuse(self, call: Call, why: str) -> None:
        """This rank cannot take part. Raises OSError."""
        self.tell(turn=call.turn, state=Answering.FAULT, fault=why, part=None)

    def follow(self, call: Call) -> str:
        """Take part in a turn and return the name of its snapshot. Raises SnapshotError with what went wrong."""
        try:
            self.tell(turn=call.turn, state=Answering.HEARD, part=None, fault="", place=Place())
            name = self._follow(call)
        except BaseException as error:
            fault = str(error) if isinstance(error, PaddleGpuError) else f"{type(error).__name__}: {error}"
            self.refuse(call, fault)
            raise
        self.tell(state=Answering.ENDED)
        return name

    def _follow(self, call: Call) -> str:
        terms = Terms(call.cause, call.patience_s, call.remaining_s)
        watch = Watch(terms)
        watch.meeting()
        self._wait(call.turn, watch, lambda now: now.stage is not Stage.CALLED)
        watch.meeting()
        meet = Meeting(self._expect, partial(self._stand, call.turn, watch))
        with self._trainee.frozen(terms.patience_s, meet) as frozen:
            watch.working()
            then = self._trainee.agreed(terms.cause)
            updates = self._trainee.updates
            finish = self._write(call.turn, frozen, watch)
            if then is not None:
                name = self._end(call.turn, frozen, finish, watch)
                self._trainee.saved(updates)
                settle(self._trainee, watch)
                self.tell(state=Answering.ENDED)
                then(self._directory / name)
                return name
        name = self._end(call.turn, frozen, finish, watch)
        self._trainee.saved(updates)
        return name

    def _write(self, turn: int, frozen: Frozen, watch: Watch) -> Callable[[], Part]:
        part = PartDraft(self._world.rank, frozen.state, Beat(self._beat))  # adds up checksums while rank 0 writes
        now = self._wait(turn, watch, lambda now: now.stage is not Stage.AGREED)
        return part.write(self._directory / now.draft, self._first(now))

    def _first(self, now: Call) -> Contents:
        """Return rank 0's contents."""
        place = self._directory / now.draft
        files = [place / name for name in layout.TENSOR_FILES]
        sizes = {file.name: file.lstat().st_size for file in files if file.exists()}
        data = reader.read_checked(place / layout.CONTENTS, now.contents_nbytes, now.contents_crc32)
        return contents.decode(data, sizes)

    def _end(self, turn: int, frozen: Frozen, finish: Callable[[], Part], watch: Watch) -> str:
        self.tell(state=Answering.WRITTEN, part=replace(finish(), inexact=frozen.inexact))
        return self._wait(turn, watch, lambda now: now.stage is Stage.SAVED).draft

    def _expect(self, place: Place) -> None:
        """See Meeting."""
        self.tell(place=max(place, self._answer.place))

    def _stand(self, turn: int, watch: Watch, place: Place) -> Place:
        """See Meeting."""
        self.tell(state=Answering.STANDING, place=place)
        now = self._wait(turn, watch, lambda now: now.stage is not Stage.GATHERING or now.place > place)
        if now.place < place or (now.place > place and now.stage is not Stage.GATHERING):
            raise SnapshotError("The ranks have not come to one place", STAYS)
        if now.place > place:
            self.tell(state=Answering.HEARD)
        return now.place

    def _wait(self, turn: int, watch: Watch, ready: Callable[[Call], bool]) -> Call:
        """Wait for rank 0. Raises SnapshotError where the turn has failed, or rank 0 does not answer."""
        while True:
            now = self.call()
            if now is not None and now.turn == turn and now.stage is not Stage.FAILED and ready(now):
                return now
            if now is not None and (now.turn != turn or now.stage is Stage.FAILED):
                raise SnapshotError(now.fault or "rank 0 has begun anew", "" if now.fault else STAYS)
            if now is not None and gone(now):
                raise SnapshotError("rank 0 has ended without making it a snapshot", STAYS)
            watch.look(now, "rank 0")

    def _beat(self) -> None:
        self.tell(beat=self._answer.beat + 1)
