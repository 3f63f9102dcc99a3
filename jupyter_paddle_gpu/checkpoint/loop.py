"""A training loop that is being run: its boundaries, and what was copied at the last one."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.checkpoint.cursor import Cursor
from jupyter_paddle_gpu.checkpoint.gate import Gate
from jupyter_paddle_gpu.checkpoint.kept import Kept, KeptCopy
from jupyter_paddle_gpu.checkpoint.loops import LoopKey, left_by_break, on_stack, own_stack_has
from jupyter_paddle_gpu.core.budget import shortest_step_s
from jupyter_paddle_gpu.core.snapshot import Position

_WARM_UP = 3  # boundaries that are always copied: the first steps are the long ones


@dataclass(frozen=True)
class Boundary:
    """Everything that is small, as it was between two steps. ``epoch`` holds what fixes the order of this epoch."""

    random: dict[str, Any]
    epoch: dict[str, Any]
    loader: dict[str, Any]
    kept: KeptCopy
    moment: Any = None  # capture.picture.Moment; None without paddle
    versions: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """The last resume point: the gate's ``moves`` then, and its boundary where that was copied."""

    position: Position
    moves: int
    boundary: Boundary | None


class Loop:
    """One walk of guard.steps or of Model.fit over its epochs, in one thread."""

    def __init__(self, key: LoopKey, frame: FrameType | None, cursor: Cursor, gate: Gate, kept: Kept) -> None:
        self.key = key
        self.cursor = cursor
        self.began_at = gate.updates
        self._at: tuple[int, int, int, int, Boundary | None] | None = None  # one assignment: others read it
        self.closed = False
        self.inventory: Any = None
        self.nested = False
        self.interrupted = False
        self.epoch: dict[str, Any] = {}
        self._gate = gate
        self._kept = kept
        self._frame = frame
        self._thread_id = threading.get_ident()
        self._last_s = -math.inf
        self._worth_s = 0.0  # steps at least this long have their boundaries copied
        self._warm = 0
        self._newcomers = -1

    # Where the program is

    def running(self) -> bool:
        """Whether the loop's thread is inside of it: not once it was left by an error whose traceback lives on."""
        return not self.closed and (self._frame is None or on_stack(self._frame, self._thread_id))

    def called_us(self) -> bool:
        """Whether the calling thread runs the loop's body."""
        return not self.closed and threading.get_ident() == self._thread_id and own_stack_has(self._frame)

    def close(self, finished: bool) -> bool:
        """The loop is over; returns whether it came to its end or was left by break, not by an exception."""
        self.interrupted = not finished and not left_by_break(self._frame)
        self.closed = True
        self._frame = None
        self.inventory = None
        return not self.interrupted

    # Boundaries

    @property
    def mark(self) -> Mark | None:
        """The last resume point; None before the first. It is made here: a step must not pay for it."""
        at = self._at
        return None if at is None else Mark(Position(*at[:3]), at[3], at[4])

    def begin_epoch(self) -> None:
        """Remember what fixes the order of the epoch that is opened next."""
        self.epoch = {"random": randoms.take(), "loader": self.cursor.state()}

    def reach(self, step: int, epoch: int, batch: int, wanted: bool) -> bool:
        """The program stands between two steps; returns whether this is a resume point with a copied boundary."""
        now_s = time.perf_counter()
        step_s, self._last_s = now_s - self._last_s, now_s
        at, moves = self._at, self._gate.moves
        if at is not None and at[3] == moves and self._accumulating():
            return False
        copy = wanted or not batch or self._warm < _WARM_UP or step_s >= self._worth_s
        self._at = (step, epoch, batch, moves, self.take() if copy else None)
        return copy

    def take(self, extra: dict[str, Any] | None = None) -> Boundary:
        """Copy the boundary state now."""
        begun_s = time.perf_counter()
        moment, versions = None, 0
        if (paddle := randoms.paddle_side()) is not None:
            inventory = self._look(paddle)
            moment, versions = paddle.picture.take(inventory), paddle.picture.versions(inventory)
        boundary = Boundary(
            random=randoms.take(),
            epoch=self.epoch,
            loader=self.cursor.state(),
            kept=self._kept.encode(),
            moment=moment,
            versions=versions,
        )
        self._warm += 1
        if self._warm > 1:  # the first one has looked for the networks
            self._worth_s = shortest_step_s(time.perf_counter() - begun_s)
        return boundary

    def clean(self) -> Boundary | None:
        """Return the last boundary if it was copied and nothing heavy has moved since; call it holding the gate."""
        mark = self.mark
        if mark is None or mark.boundary is None or mark.moves != self._gate.moves:
            return None
        paddle = randoms.paddle_side()
        if self.inventory is not None and paddle.picture.versions(self.inventory) != mark.boundary.versions:
            return None
        return mark.boundary

    def needed(self) -> set[int]:
        """Return the numbers of the optimizers that this loop has used."""
        trained = self.inventory.trained if self.inventory is not None else ()
        return {number for number, item in enumerate(trained) if item.last > self.began_at}

    def _look(self, paddle: Any) -> Any:
        if self.inventory is None or self._newcomers != self._gate.newcomers:
            self._newcomers = self._gate.newcomers
            self.inventory = paddle.inventory.look(self.began_at)
        return self.inventory

    def _accumulating(self) -> bool:
        return self.inventory is not None and bool(randoms.paddle_side().picture.pending_gradients(self.inventory))
