"""The training of this process: watched through the gate, frozen at a safe moment, restored exactly."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jupyter_paddle_gpu.checkpoint import hooks
from jupyter_paddle_gpu.checkpoint.gate import Gate
from jupyter_paddle_gpu.checkpoint.reports import Frozen, RestoreReport
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.core.errors import SnapshotError

if TYPE_CHECKING:  # what loads numpy is imported where it is first used: a kernel starts without it
    from jupyter_paddle_gpu.checkpoint.freezing import Freezer
    from jupyter_paddle_gpu.checkpoint.kept import Kept
    from jupyter_paddle_gpu.checkpoint.loops import LoopBook
    from jupyter_paddle_gpu.checkpoint.ranks.meeting import Meeting
    from jupyter_paddle_gpu.checkpoint.returning import Return
    from jupyter_paddle_gpu.checkpoint.steps import Walk

__all__ = ["Frozen", "RestoreReport", "Training"]

log = logging.getLogger(__name__)

# While a save runs the interpreter changes threads this often: at Python's 5 ms, each of the dozen system calls before
# the first byte waits for the training to hand the interpreter over.
_SAVING_SWITCH_S = 0.0002


class Training:
    """One per process. It sees every update after ``install``; ``say`` is given what the user should know."""

    def __init__(self, say: Callable[[str], None] = log.info) -> None:
        self.gate = Gate()
        self.say = say
        self.before_fit: Callable[[], None] = lambda: None
        self.ending: Callable[[], bool] = lambda: False  # whether this process is being evicted, asked by a handler
        self._freezing = threading.Lock()
        self._restored = False

    @cached_property
    def kept(self) -> Kept:
        """What the user keeps, by name."""
        from jupyter_paddle_gpu.checkpoint.kept import Kept

        return Kept()

    @cached_property
    def book(self) -> LoopBook:
        """The loops of this process."""
        from jupyter_paddle_gpu.checkpoint.loops import LoopBook

        return LoopBook()

    @cached_property
    def _freezer(self) -> Freezer:
        from jupyter_paddle_gpu.checkpoint.freezing import Freezer

        return Freezer(self.gate, self.kept, self.book)

    @cached_property
    def _return(self) -> Return:
        from jupyter_paddle_gpu.checkpoint.returning import Return

        return Return(self.kept)

    def install(self) -> None:
        """Watch the updates of this process, now or once paddle is imported, which is not done here. Repeatable."""
        hooks.install(self.gate, self._fit, lambda: self.ending())

    @property
    def updates(self) -> int:
        """How many updates this process has made."""
        return self.gate.updates

    def step(self) -> int | None:
        """Return the finished steps of the loop that runs or ran last, else the updates; None before any training."""
        loop = self._freezer.loop if "_freezer" in vars(self) else None
        return self.gate.updates or None if loop is None else loop.mark[0]

    def has_training(self) -> bool:
        """Whether there is anything to save beside what is kept."""
        return self.gate.updates > 0 or self._restored or ("_freezer" in vars(self) and self._freezer.loop is not None)

    def nbytes(self) -> int:
        """Return the bytes that a snapshot would have to hold, but for the small change."""
        kept = self.kept.nbytes() if "kept" in vars(self) else 0
        return kept + (self._freezer.nbytes() if self.has_training() else 0)

    def frozen_nbytes(self) -> int:
        """Return the bytes of the weights that do not train."""
        return self._freezer.frozen_nbytes() if self.has_training() else 0

    def keep(self, **values: object) -> None:
        """Put these values into every snapshot from now on; see Kept.keep. Raises NotKept with the reason."""
        self.kept.keep(values)

    def inexact(self) -> tuple[str, ...]:
        """Return a sentence for each thing that a resume would not repeat exactly, as far as it is known now."""
        return self._freezer.inexact()

    @contextmanager
    def frozen(self, patience_s: float, meet: Meeting | None = None) -> Iterator[Frozen]:
        """Give the state at a safe moment, waited for at most ``patience_s`` seconds; updates wait for the block's end.

        May be called from any thread. ``state.tensors`` are the training's own memory: use them inside the block only.
        When the patience runs out the state is taken as it is then, and ``inexact`` says so. Raises SnapshotError
        inside of an update, or while another thread freezes. ``meet``: with other ranks, see Freezer.freeze.
        """
        if not self._freezing.acquire(timeout=max(0.0, patience_s)):
            raise SnapshotError("Another save is still running", "Wait for it; its snapshot will be the newest.")
        interval_s = sys.getswitchinterval()
        sys.setswitchinterval(_SAVING_SWITCH_S)
        try:
            frozen = self._freezer.freeze(patience_s, meet)
            try:
                yield frozen
            finally:
                self.gate.let_go()
        finally:
            sys.setswitchinterval(interval_s)
            self._freezing.release()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The calling thread stands still in this block, and another one saves for it. Raises SnapshotError inside of
        an update."""
        self._freezer.check_outside()
        loop = self._freezer.loop
        loop = loop if loop is not None and loop.called_us() else None
        if loop is not None:
            loop.waits = True
        try:
            yield
        finally:
            if loop is not None:
                loop.waits = False

    def stands(self) -> bool:
        """Whether the frozen training has come to its next update, or does not move at all: nothing of the step that
        it is in needs another rank any more."""
        loop = self._freezer.loop
        return self.gate.waiting > 0 or loop is None or loop.waits or not loop.running()

    def restore(self, state: State) -> RestoreReport:
        """Put this state into the live networks, optimizers, generators and kept values.

        A loop of guard.steps that begins afterwards goes on at its position. Where networks were built twice the
        newest are used. Raises SnapshotMismatch with every difference, and nothing is loaded then; but where earlier
        loops come first, whose network may be another one, the state waits for its loop (``waits`` in the report).
        """
        report = self._return.restore(state)
        self.book.done.extend(key for key in self._return.done if key not in self.book.done)
        self._restored = True
        return report

    def restore_part(self, state: State) -> RestoreReport:
        """Put what fits of this state into the live networks and optimizers, with the kept values.

        What did not fit is in ``left_out``; the training begins at its beginning. Raises SnapshotMismatch where nothing
        fits, and nothing is loaded then.
        """
        report = self._return.restore_part(state)
        self._restored = True
        return report

    def evict(self, exception: BaseException | None) -> None:
        """Let the training end with this exception at its next update or step boundary (None: let it run)."""
        self.gate.end(exception)

    def steps(self, loader: Iterable[Any], epochs: int = 1) -> Iterator[tuple[int, Any]]:
        """Yield ``(step, batch)``; ``step`` counts from 0 over all epochs. Each step begins at a boundary.

        After a restore it begins at the saved step with the samples and the random numbers that would have come.
        """
        from jupyter_paddle_gpu.checkpoint.steps import walk

        return walk(self._begin, loader, epochs)

    def _fit(
        self, fit: Callable[..., Any], module: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Stand in for paddle.Model.fit: its batches come with boundaries, and go on after a restore."""
        from jupyter_paddle_gpu.checkpoint.capture import fitting

        self.before_fit()
        arguments = fitting.arguments_of(fit, (model, *args), kwargs)
        arguments["train_data"], arguments["eval_data"] = fitting.loaders_of(model, arguments)
        how = self._begin(arguments["train_data"])
        if how.resume.skip:
            return None
        if how.loop is None or not fitting.dynamic():
            return fit(model, **arguments)
        finished = False
        self._freezer.begin(how.loop)
        try:
            result = fitting.Fit(model, how.loop, how.resume).run(fit, module, arguments)
            finished = True
        finally:
            self._freezer.finish(how.loop, finished)
        return result

    def _begin(self, loader: Iterable[Any]) -> Walk:
        """A loop begins, at the first step that is asked for."""
        from jupyter_paddle_gpu.checkpoint.loop import Loop
        from jupyter_paddle_gpu.checkpoint.loops import users_frame
        from jupyter_paddle_gpu.checkpoint.steps import Walk
        from jupyter_paddle_gpu.checkpoint.walking import cursor_of

        outer, frame, cursor = self._freezer.loop, users_frame(), cursor_of(loader)
        if outer is not None and outer.running() and outer.called_us():
            outer.nested = True
            return Walk(cursor)
        loop = Loop(self.book.key(frame), frame, cursor, self.gate, self.kept)
        resume = self._return.begin(loop.key)
        if resume.skip:
            self.say(f"the loop “{loop.key.line}” was finished before the snapshot: it is passed over")
        return Walk(cursor, loop, resume, self._freezer)
