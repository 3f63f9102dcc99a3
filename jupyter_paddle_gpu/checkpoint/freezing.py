"""How a training is brought to stand still: at the last boundary if that is enough, else at the next one."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.checkpoint.composing import Taken, compose, own_state
from jupyter_paddle_gpu.checkpoint.gate import Deadline, Gate
from jupyter_paddle_gpu.checkpoint.kept import Kept
from jupyter_paddle_gpu.checkpoint.loop import Boundary, Loop
from jupyter_paddle_gpu.checkpoint.loops import LoopBook
from jupyter_paddle_gpu.checkpoint.ranks.meeting import Meeting, first_step, take_together
from jupyter_paddle_gpu.checkpoint.reports import Frozen
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.ranks import Place
from jupyter_paddle_gpu.core.snapshot import Position

NO_POSITION = "no position in the data: wrap the loader in guard.steps"
NESTED = "a loop of guard.steps runs inside of another one's step: only the outer one has boundaries"
_LOOK_AGAIN_S = 0.02
_BETWEEN_S = 0.0005
NOWHERE = Place()


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
        self.news = threading.Condition()
        self._handed: tuple[Boundary, Position] | None = None  # with the gate held,
        self._handed_by: Loop | None = None
        self.begun = 0  # how many loops have
        self._last: _Ended | None = None
        self.loop: Loop | None = None

    # The training's thread

    def begin(self, loop: Loop) -> None:
        """This loop's boundaries count from now on."""
        with self.news:
            loop.hand_over = lambda: self._hand_over(loop)
            self.loop = loop
            self.begun += 1

    def finish(self, loop: Loop, finished: bool) -> None:
        """The loop is over: to its end, or left before."""
        with self.news:
            if loop.close(finished):
                self._book.finish(loop.key)
            if self.loop is loop:
                self.loop = None
                paddle = randoms.paddle_side()
                alive = None if paddle is None else paddle.inventory.alive()
                self._last = _Ended(loop, loop.here()[1], self.gate.moves, randoms.take(), alive)
            self.news.notify_all()

    def _hand_over(self, loop: Loop) -> None:
        """Called in the training's thread, which has just copied the boundary: it keeps the gate for the other one."""
        with self.news:
            if loop.wanted and self.gate.hold(_LOOK_AGAIN_S):  # the other thread may be looking at it just now
                loop.wanted, self._handed, self._handed_by = False, loop.clean(), loop
                if self._handed is None:  # something was changed by hand meanwhile: the next boundary may do
                    self.gate.let_go()
                self.news.notify_all()

    # The thread that saves

    def freeze(self, patience_s: float, meet: Meeting | None = None) -> Frozen:
        """Return the state; the caller lets the gate go. Raises SnapshotError inside of an update.

        ``meet``: other ranks are to stand at the same place, see Meeting.
        """
        self.check_outside()
        deadline = Deadline(patience_s)
        try:
            return compose(
                self.take(deadline) if meet is None else take_together(self, deadline, meet), self._book.done
            )
        except BaseException:
            self._give_up()
            raise

    def check_outside(self) -> None:
        """Raises SnapshotError inside of an update."""
        if self.gate.inside():
            raise SnapshotError(
                "The optimizer is in the middle of its update", "Save before or after optimizer.step()."
            )

    def _give_up(self) -> None:
        """Let the training go on where the save failed, at whichever moment: it must never hang for it."""
        with self.news:
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
            return (*loop.cursor.inexact(), *((NESTED,) if loop.nested else ()), *own_state(loop.inventory))
        if not self.gate.updates:
            return ()
        return (*(() if self._at_end() else (NO_POSITION,)), *own_state(self._look()))

    def _at_end(self) -> _Ended | None:
        """Return how the last loop ended, if nothing has moved since."""
        return self._last if self._last is not None and self._last.moves == self.gate.moves else None

    def take(self, deadline: Deadline, there: Place = NOWHERE, meet: Meeting | None = None) -> Taken:
        """Hold the gate and take the best state there is, at a boundary from ``there`` on."""
        with self.news:
            handed, self._handed = self._handed, None
        if handed is not None and self._handed_by is not None:  # while it was on its way to where others stand
            return self._of_loop(self._handed_by, *handed)
        while True:
            loop = self.loop
            if loop is not None and loop.running() and not loop.called_us():
                loop.wanted_from = first_step(there, self.begun)
                if (reached := self._boundary(loop, deadline)) is not None:
                    return self._of_loop(loop, *reached)
                if deadline.left_s() <= 0:
                    return self._cut_off(loop)
                if meet is not None:
                    meet.expect(Place(self.begun, loop.mark[0]))
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
            if (reached := loop.clean()) is not None and reached[1].step >= loop.wanted_from:
                loop.wanted = False
                return reached
            self.gate.let_go()
        with self.news:
            loop.wanted = self.gate.attention = True
            self.news.wait_for(lambda: self._handed or loop.closed, min(_LOOK_AGAIN_S, deadline.left_s()))
            handed, self._handed, loop.wanted = self._handed, None, False
        return handed

    def _of_loop(self, loop: Loop, boundary: Boundary, position: Position, *faults: str) -> Taken:
        inexact = (*faults, *loop.cursor.inexact(), *((NESTED,) if loop.nested else ()))
        return Taken(boundary, loop.needed(boundary.inventory), position, loop.key, inexact)

    def _interrupted(self, loop: Loop, position: Position) -> Taken:
        """The loop was left with an error: it may go on."""
        fault = f"step {position.step} was interrupted: what it had not done yet is left out"
        taken = self._of_loop(loop, loop.take(), position, fault)
        loop.forget()
        return taken

    def _inside(self, loop: Loop) -> Taken:
        """The loop's own body asks."""
        step, position = loop.here()
        if not loop.called_us():
            return self._interrupted(loop, position)
        if (reached := loop.clean()) is not None:
            return self._of_loop(loop, *reached)
        fault = f"saved inside of step {step}: make guard.save() the last line of the loop's body"
        return self._of_loop(loop, loop.take(), position, fault)

    def _cut_off(self, loop: Loop) -> Taken:
        """The patience is over and no boundary came."""
        step, position = loop.here()
        if not self.gate.hold(0.0):
            return self._torn()
        fault = f"step {step} was cut off: random state, statistics and schedules are those of its middle"
        return replace(self._of_loop(loop, loop.take(), position, fault), cut_off=True)

    def _torn(self) -> Taken:
        raise SnapshotError(
            "The optimizer's update has not ended in the time that was left", "The previous snapshot stays the newest."
        )

    def _outside(self, ended: _Ended | None) -> Taken:
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
        return Taken(boundary, needed, ended.position if ended else None, None, inexact)
