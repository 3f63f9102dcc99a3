"""How a training is brought to stand still: at the last boundary if that is enough, else at the next one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.checkpoint.gate import Deadline, Gate
from jupyter_paddle_gpu.checkpoint.keep import Encoder
from jupyter_paddle_gpu.checkpoint.kept import Kept
from jupyter_paddle_gpu.checkpoint.loop import Boundary, Loop
from jupyter_paddle_gpu.checkpoint.loops import LoopBook, LoopKey
from jupyter_paddle_gpu.checkpoint.reports import Frozen
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.snapshot import Position

NO_POSITION = "no position in the data: wrap the loader in guard.steps"
NESTED = "a loop of guard.steps runs inside of another one's step: only the outer one has boundaries"
_LOOK_AGAIN_S = 0.02
_BETWEEN_S = 0.0005


@dataclass(frozen=True)
class _Taken:
    """What is to be composed."""

    boundary: Boundary
    needed: set[int]
    position: Position | None
    current: LoopKey | None
    inexact: tuple[str, ...]
    cut_off: bool = False


@dataclass(frozen=True)
class _Ended:
    """A loop that is over: its last position, the gate's moves then, the random state, the optimizers that were."""

    loop: Loop
    position: Position
    moves: int
    random: dict[str, Any]
    alive: Any


class Freezer:
    """Between the training's thread, which says ``begin``, ``reach`` and ``finish``, and the thread that saves."""

    def __init__(self, gate: Gate, kept: Kept, book: LoopBook) -> None:
        self.gate = gate
        self._kept = kept
        self._book = book
        self._news = threading.Condition()
        self._handed: tuple[Boundary, Position] | None = None  # with the gate held
        self._last: _Ended | None = None
        self.loop: Loop | None = None

    # The training's thread

    def begin(self, loop: Loop) -> None:
        """This loop's boundaries count from now on."""
        with self._news:
            loop.hand_over = lambda: self._hand_over(loop)
            self.loop = loop

    def finish(self, loop: Loop, finished: bool) -> None:
        """The loop is over: to its end, or left before."""
        with self._news:
            if loop.close(finished):
                self._book.finish(loop.key)
            if self.loop is loop:
                self.loop = None
                paddle = randoms.paddle_side()
                alive = None if paddle is None else paddle.inventory.alive()
                self._last = _Ended(loop, loop.here()[1], self.gate.moves, randoms.take(), alive)
            self._news.notify_all()

    def _hand_over(self, loop: Loop) -> None:
        """Called in the training's thread, which has just copied the boundary: it keeps the gate for the other one."""
        with self._news:
            if loop.wanted and self.gate.hold(0.0):
                loop.wanted, self._handed = False, loop.clean()
                if self._handed is None:  # something was changed by hand meanwhile: the next boundary may do
                    self.gate.let_go()
                self._news.notify_all()

    # The thread that saves

    def freeze(self, patience_s: float) -> Frozen:
        """Return the state; the caller lets the gate go. Raises SnapshotError inside of an update."""
        if self.gate.inside():
            raise SnapshotError(
                "The optimizer is in the middle of its update", "Save before or after optimizer.step()."
            )
        try:
            return self._compose(self._take(Deadline(patience_s)))
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Let the training go on where the save failed, at whichever moment: it must never hang for it."""
        with self._news:
            self._handed = None
            if self.loop is not None:
                self.loop.wanted = False
            self.gate.let_go_if_held()

    def nbytes(self) -> int:
        """Return the bytes of what the updates move."""
        paddle = randoms.paddle_side()
        return 0 if paddle is None else int(paddle.picture.nbytes(self._look()))

    def frozen_nbytes(self) -> int:
        """Return the bytes of the weights that do not train."""
        paddle = randoms.paddle_side()
        return 0 if paddle is None else int(paddle.picture.frozen_nbytes(self._look()))

    def _look(self) -> Any:
        """Return what is being trained, as the loop that runs sees it."""
        inventory = self.loop.inventory if self.loop is not None else None
        return randoms.paddle_side().inventory.look() if inventory is None else inventory

    def inexact(self) -> tuple[str, ...]:
        """Return what is known not to be exact now."""
        loop = self.loop
        if loop is not None:
            return (*loop.cursor.inexact(), *((NESTED,) if loop.nested else ()), *_own_state(loop.inventory))
        if not self.gate.updates:
            return ()
        return (*(() if self._at_end() else (NO_POSITION,)), *_own_state(self._look()))

    def _at_end(self) -> _Ended | None:
        """Return how the last loop ended, if nothing has moved since."""
        return self._last if self._last is not None and self._last.moves == self.gate.moves else None

    def _take(self, deadline: Deadline) -> _Taken:
        """Hold the gate and take the best state there is."""
        while True:
            loop = self.loop
            if loop is not None and loop.running() and not loop.called_us():
                if (reached := self._boundary(loop, deadline)) is not None:
                    return self._of_loop(loop, *reached)
                if deadline.left_s() <= 0:
                    return self._cut_off(loop)
            elif not self._hold_between_steps(deadline):
                return self._torn()
            elif self.loop is loop and not (loop is not None and loop.closed):
                break
            else:
                self.gate.let_go()  # a loop has begun or ended meanwhile
        if loop is None:
            ended = self._at_end()
            if ended and ended.loop.interrupted:
                return self._interrupted(ended.loop, ended.position)
            return self._outside(ended)
        return self._inside(loop)

    def _hold_between_steps(self, deadline: Deadline) -> bool:
        """Hold the gate while no step is half-way through its groups of parameters."""
        while self.gate.hold(deadline.left_s()):
            if not self.gate.between():
                return True
            self.gate.let_go()
            if deadline.left_s() <= 0:
                break
            time.sleep(_BETWEEN_S)
        return False

    def _boundary(self, loop: Loop, deadline: Deadline) -> tuple[Boundary, Position] | None:
        """Return a boundary with the gate held: the last one, or the next one if that comes now; None: not yet."""
        if self.gate.hold(min(_LOOK_AGAIN_S, deadline.left_s())):
            if (reached := loop.clean()) is not None:
                return reached
            self.gate.let_go()
        with self._news:
            loop.wanted = self.gate.attention = True
            self._news.wait_for(lambda: self._handed or loop.closed, min(_LOOK_AGAIN_S, deadline.left_s()))
            handed, self._handed, loop.wanted = self._handed, None, False
        return handed

    def _of_loop(self, loop: Loop, boundary: Boundary, position: Position, *faults: str) -> _Taken:
        inexact = (*faults, *loop.cursor.inexact(), *((NESTED,) if loop.nested else ()))
        return _Taken(boundary, loop.needed(boundary.inventory), position, loop.key, inexact)

    def _interrupted(self, loop: Loop, position: Position) -> _Taken:
        """The loop was left with an error: it may go on."""
        fault = f"step {position.step} was interrupted: what it had not done yet is left out"
        taken = self._of_loop(loop, loop.take(), position, fault)
        loop.forget()
        return taken

    def _inside(self, loop: Loop) -> _Taken:
        """The loop's own body asks."""
        step, position = loop.here()
        if not loop.called_us():
            return self._interrupted(loop, position)
        if (reached := loop.clean()) is not None:
            return self._of_loop(loop, *reached)
        fault = f"saved inside of step {step}: make guard.save() the last line of the loop's body"
        return self._of_loop(loop, loop.take(), position, fault)

    def _cut_off(self, loop: Loop) -> _Taken:
        """The patience is over and no boundary came."""
        step, position = loop.here()
        if not self.gate.hold(0.0):
            return self._torn()
        fault = f"step {step} was cut off: random state, statistics and schedules are those of its middle"
        return replace(self._of_loop(loop, loop.take(), position, fault), cut_off=True)

    def _torn(self) -> _Taken:
        raise SnapshotError(
            "The optimizer's update has not ended in the time that was left", "The previous snapshot stays the newest."
        )

    def _outside(self, ended: _Ended | None) -> _Taken:
        """No loop runs: everything as it is now.

        If a loop has ended, and not its own thread asks, then as it was when the loop had ended: what the program has
        built since, and drawn for it, it builds and draws again when it comes back.
        """
        then = None if ended is None or ended.loop.in_my_thread() else ended
        moment, inventory, needed = None, None, set()
        paddle = randoms.paddle_side()
        if paddle is not None and self.gate.updates:
            inventory = paddle.inventory.look(among=then.alive if then else None)
            moment = paddle.picture.take(inventory)
            last = max((item.last for item in inventory.trained), default=0)
            needed = {number for number, item in enumerate(inventory.trained) if item.last == last and item.in_network}
        random = then.random if then else randoms.take()
        boundary = Boundary(random, {}, {}, self._kept.encode(), inventory, moment)
        inexact = () if ended or not self.gate.updates else (NO_POSITION,)
        return _Taken(boundary, needed, ended.position if ended else None, None, inexact)

    def _compose(self, taken: _Taken) -> Frozen:
        boundary, kept = taken.boundary, taken.boundary.kept
        tensors: dict[str, RawTensor] = dict(kept.tensors)
        tensors.update(boundary.extra.tensors)
        structure: dict[str, object] = {"version": 1, "optimizers": [], "kept": kept.data, "fit": boundary.extra.data}
        frozen: frozenset[str] = frozenset()
        if boundary.inventory is not None:
            part = randoms.paddle_side().picture.compose(boundary.inventory, boundary.moment, taken.needed)
            tensors.update(part.tensors)
            structure.update(part.structure)
            frozen = part.frozen
        structure["loop"] = Encoder("", tensors).encode(self._loop_structure(taken), "loop")
        inexact = (*taken.inexact, *_own_state(boundary.inventory), *kept.left_out)
        return Frozen(State(tensors, structure, frozen), taken.position, inexact, taken.cut_off)

    def _loop_structure(self, taken: _Taken) -> dict[str, Any]:
        boundary, position = taken.boundary, taken.position
        epoch = dict(boundary.epoch)
        if epoch:
            epoch["random"] = randoms.plain(epoch["random"])
        return {
            "done": _plain(self._book.done),
            "current": taken.current.plain() if taken.current else None,
            "position": [position.step, position.epoch, position.batch] if position else None,
            "random": randoms.plain(boundary.random),
            "epoch": epoch,
            "loader": boundary.loader,
        }


def _own_state(inventory: Any) -> tuple[str, ...]:
    """Say what optimizers of the user's own keep where no snapshot looks."""
    if inventory is None:
        return ()
    return tuple(text for item in inventory.trained for text in randoms.paddle_side().optimizers.inexact(item))


def _plain(keys: Iterable[LoopKey]) -> list[list[object]]:
    return [key.plain() for key in keys]
