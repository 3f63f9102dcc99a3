"""A training loop that is being run: its boundaries, and what was copied at the last one."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.checkpoint.cursor import Cursor
from jupyter_paddle_gpu.checkpoint.gate import Gate
from jupyter_paddle_gpu.checkpoint.kept import NOTHING, Kept, KeptCopy, encode_leniently
from jupyter_paddle_gpu.checkpoint.loops import LoopKey, left_by_break
from jupyter_paddle_gpu.checkpoint.stacks import on_stack, own_stack_has
from jupyter_paddle_gpu.core.budget import shortest_step_s
from jupyter_paddle_gpu.core.snapshot import Position

_COPIES = 5  # that say what a copy costs
_WARM_UP = 3  # boundaries that are always copied: the first steps are the long ones


@dataclass(frozen=True)
class Boundary:
    """Everything that is small, as it was between two steps. ``epoch`` holds what fixes the order of this epoch."""

    random: dict[str, Any]
    epoch: dict[str, Any]
    loader: dict[str, Any]
    kept: KeptCopy
    inventory: Any = None  # capture.inventory.Inventory; None without paddle
    moment: Any = None  # capture.picture.Moment
    versions: int = 0
    extra: KeptCopy = NOTHING  # of Model.fit


class Loop:
    """One walk of guard.steps or of Model.fit over its epochs, in one thread."""

    def __init__(self, key: LoopKey, frame: FrameType | None, cursor: Cursor, gate: Gate, kept: Kept) -> None:
        self.key = key
        self.cursor = cursor
        self.began_at = gate.moves
        self.wanted = False  # somebody waits for the next boundary,
        self.wanted_from = 0  # that of this step or a later one
        self.waits = False  # its thread stands still in guard.save, and another one saves for it
        self.hand_over: Callable[[], None] = lambda: None  # gives it to them
        self.closed = False
        self.inventory: Any = None
        self.nested = False
        self.interrupted = False
        self.epoch: dict[str, Any] = {}
        self.extra: Callable[[], dict[str, Any]] | None = None  # what Model.fit has counted
        self._gate = gate
        self._kept = kept
        self._frame = frame
        self._thread_id = threading.get_ident()
        self.last_s = 0.0  # when the last boundary was passed
        self.worth_s = 0.0  # a step that takes as long pays for a copy of its boundary
        self._warm = 0
        self._costs_s: deque[float] = deque(maxlen=_COPIES)
        # The last resume point: step, epoch, batch, the gate's moves, the boundary where it was copied. One assignment.
        self.mark: tuple[int, int, int, int, Boundary | None] = (0, 0, 0, -1, None)
        self._newcomers = -1

    # Where the program is

    def running(self) -> bool:
        """Whether the loop's thread is inside of it: not once it was left by an error whose traceback lives on."""
        return not self.closed and (self._frame is None or on_stack(self._frame, self._thread_id))

    def in_my_thread(self) -> bool:
        """Whether the calling thread is the one that runs the loop, or ran it."""
        return threading.get_ident() == self._thread_id

    def called_us(self) -> bool:
        """Whether the calling thread runs the loop's body, or saves for the one that does."""
        if self.closed:
            return False
        return self.waits or (self.in_my_thread() and own_stack_has(self._frame))

    def close(self, finished: bool) -> bool:
        """The loop is over; returns whether it came to its end or was left by break, not by an exception."""
        self.interrupted = not finished and not left_by_break(self._frame)
        self.closed = True
        self._frame = None
        self.forget()
        return not self.interrupted

    def forget(self) -> None:
        """Hold no network any more."""
        self.inventory = None
        self.mark = (*self.mark[:4], None)

    # Boundaries

    def begin_epoch(self) -> None:
        """Remember what fixes the order of the epoch that is opened next."""
        self.epoch = {"random": randoms.take(), "loader": self.cursor.state()}

    def reach(self, step: int, epoch: int, batch: int) -> None:
        """The program stands between two steps. Raises when the training is to end."""
        gate, now_s = self._gate, time.perf_counter()
        gate.attention = False
        gate.check()
        if self.mark[3] == gate.moves and self._accumulating():
            gate.attention = self.wanted
            return  # no resume point: the last one stays
        wanted = self.wanted and step >= self.wanted_from
        gate.attention = self.wanted and not wanted
        begins = batch == 0 or self._warm < _WARM_UP or self._newcomers != gate.newcomers
        copied = wanted or begins or now_s - self.last_s >= self.worth_s
        self.mark = (step, epoch, batch, gate.moves, self.take() if copied else None)
        if wanted:
            self.hand_over()
        self.last_s = time.perf_counter()

    def take(self) -> Boundary:
        """Copy the boundary state now."""
        begun_s = time.thread_time()  # of this thread alone: a save that runs beside it is no cost of the copy
        inventory, moment, versions = None, None, 0
        if (paddle := randoms.paddle_side()) is not None:
            inventory = self._look(paddle)
            moment, versions = paddle.picture.take(inventory), paddle.picture.versions(inventory)
        boundary = Boundary(
            random=randoms.take(),
            epoch=self.epoch,
            loader=self.cursor.state(),
            kept=self._kept.encode(),
            extra=NOTHING if self.extra is None else encode_leniently("fit", self.extra()),
            inventory=inventory,
            moment=moment,
            versions=versions,
        )
        self._warm += 1
        if self._warm >= _WARM_UP:  # the first ones have looked for the networks
            self._costs_s.append(time.thread_time() - begun_s)
            self.worth_s = shortest_step_s(self._costs_s)
        return boundary

    def clean(self) -> tuple[Boundary, Position] | None:
        """Return the last boundary if it was copied and nothing heavy has moved since; call it holding the gate."""
        step, epoch, batch, moves, boundary = self.mark
        if boundary is None or moves != self._gate.moves:
            return None
        paddle = randoms.paddle_side()
        if boundary.inventory is not None and paddle.picture.versions(boundary.inventory) != boundary.versions:
            return None
        return boundary, Position(step, epoch, batch)

    def here(self) -> tuple[int, Position]:
        """Return the number of the step that runs, and the position after it if its update is done."""
        step, epoch, batch, moves, _ = self.mark
        done = moves not in (-1, self._gate.moves)
        return step, Position(step + done, epoch, batch + done)

    def needed(self, inventory: Any) -> set[int]:
        """Return the numbers of the optimizers that this loop has used."""
        trained = inventory.trained if inventory is not None else ()
        return {number for number, item in enumerate(trained) if item.last > self.began_at}

    def _look(self, paddle: Any) -> Any:
        if self.inventory is None or self._newcomers != self._gate.newcomers:
            self._newcomers = self._gate.newcomers
            self.inventory = paddle.inventory.look(self.began_at)
        return self.inventory

    def _accumulating(self) -> bool:
        return self.inventory is not None and bool(randoms.paddle_side().picture.pending_gradients(self.inventory))
