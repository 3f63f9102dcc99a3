"""A restored state on its way to the loop that it belongs to."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import Any

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.checkpoint.keep import Decoder
from jupyter_paddle_gpu.checkpoint.kept import Kept
from jupyter_paddle_gpu.checkpoint.loops import LoopKey
from jupyter_paddle_gpu.checkpoint.reports import RestoreReport
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.core.errors import PaddleMissing, SnapshotMismatch
from jupyter_paddle_gpu.core.snapshot import Position


@dataclass(frozen=True)
class Resume:
    """How a loop begins: passed over, from its start, or at ``position`` with what was ``saved`` of its boundary."""

    position: Position = field(default_factory=lambda: Position(0, 0, 0))
    skip: bool = False
    saved: dict[str, Any] = field(default_factory=dict)


class Return:
    """Loads a state at once where that is possible, and again when its loop begins with newer networks."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._state: State | None = None
        self._loop: dict[str, Any] = {}
        self._targets: tuple[int, ...] | None = None  # what was written to; None: nothing yet
        self.done: list[LoopKey] = []
        self._to_skip: set[LoopKey] = set()

    def restore(self, state: State) -> RestoreReport:
        """See Training.restore."""
        loop = dict(Decoder(state.tensors).decode(state.structure["loop"]))
        loop["fit"] = Decoder(state.tensors).decode(state.structure["fit"])
        position = Position(*loop["position"]) if loop["position"] else None
        done = [LoopKey.of(key) for key in loop["done"]]
        waits = False
        left_out: tuple[str, ...] = ()
        targets: tuple[int, ...] | None = None
        try:
            targets, left_out = self._load(state, loop)
        except SnapshotMismatch:
            if not done or (len(done) == 1 and not loop["current"]):  # else other networks come first
                raise
            waits = True
        self._state, self._loop, self._targets = state, loop, targets
        self.done, self._to_skip = done, set(done)
        return RestoreReport(position, waits, (*state.left_out, *left_out), self._kept.unclaimed())

    def restore_part(self, state: State) -> RestoreReport:
        """See Training.restore_part."""
        paddle = randoms.paddle_side()
        if paddle is None:
            raise _missing()
        from jupyter_paddle_gpu.checkpoint.capture import partial

        count, lines = partial.load(state, paddle.inventory.look_at_all())
        self._kept.restore(state.structure["kept"], state.tensors)  # type: ignore[arg-type]  # a mapping, as compose made it
        self._state = None
        return RestoreReport(None, False, tuple(lines), self._kept.unclaimed(), count)

    def begin(self, key: LoopKey) -> Resume:
        """A loop begins: return how. Raises SnapshotMismatch when the state waited for it and does not fit."""
        state, loop = self._state, self._loop
        if state is None:
            return Resume()
        current = LoopKey.of(loop["current"]) if loop["current"] else None
        if key != current and key in self._to_skip:
            self._to_skip.discard(key)
            if current is None and key == self.done[-1]:  # here the snapshot was taken
                self._state = None
                self._load(state, loop, unless=self._targets)
                randoms.give(loop["random"])  # the next network is made of it
            return Resume(skip=True)
        if current is None:
            self._state = None
            return Resume()
        self._state = None
        self._load(state, loop, unless=self._targets)
        return Resume(Position(*loop["position"]), saved=loop)

    def _load(
        self, state: State, loop: dict[str, Any], unless: tuple[int, ...] | None = None
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Write the state, unless the objects that would take it are those that have it already."""
        targets: tuple[int, ...] = ()
        left_out: tuple[str, ...] = ()
        if state.structure["optimizers"]:
            paddle = randoms.paddle_side()
            if paddle is None:
                raise _missing()
            plan = paddle.restoring.plan(state, paddle.inventory.look_at_all())
            targets = plan.targets()
            left_out = tuple(plan.left_out)
            if targets == unless:
                return targets, left_out
            paddle.restoring.apply(plan)
        missing = randoms.give(loop["random"])
        self._kept.restore(state.structure["kept"], state.tensors)  # type: ignore[arg-type]  # a mapping, as compose made it
        return targets, (*left_out, *(f"the random state of {device}: not here" for device in missing))


def _missing() -> PaddleMissing:
    if importlib.util.find_spec("paddle") is not None:
        return PaddleMissing("The snapshot holds a Paddle training, and paddle is not imported", "import paddle")
    return PaddleMissing(
        "The snapshot holds a Paddle training, and PaddlePaddle is not installed here",
        "pip install 'jupyter-paddle-gpu[cpu]', or a GPU build as the README says; the snapshot stays.",
    )
