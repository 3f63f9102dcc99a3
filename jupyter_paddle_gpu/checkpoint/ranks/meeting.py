"""How one rank comes to stand where all others do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.ranks import Place

if TYPE_CHECKING:
    from jupyter_paddle_gpu.checkpoint.composing import Taken
    from jupyter_paddle_gpu.checkpoint.freezing import Freezer
    from jupyter_paddle_gpu.checkpoint.gate import Deadline

_NEVER = 2**63
_BETWEEN_S = 0.0005


@dataclass(frozen=True)
class Meeting:
    """The other ranks, while this one comes to stand still.

    ``expect(place)``: this rank stands nowhere yet, and is in the step after ``place``. Who stands before that has to
    know: it may wait for the others' part in this step. ``stand(place)``: this rank stands there; returns where all
    meet: there, or later; the training goes on to that then.
    """

    expect: Callable[[Place], None]
    stand: Callable[[Place], Place]


def take_together(freezer: Freezer, deadline: Deadline, meet: Meeting) -> Taken:
    """Hold the gate where all ranks can: nothing is taken in the middle of a step that they have not agreed on.

    Raises SnapshotError where there is no such place in time.
    """
    there = Place()
    while True:
        taken = freezer.take(deadline, there, meet)
        here = Place(freezer.begun, taken.position.step if taken.position else freezer.gate.updates)
        if taken.cut_off:
            raise SnapshotError("No step ended in the time that was left", "The previous snapshot stays the newest.")
        if here >= there:
            there = meet.stand(here)
            if there == here:
                return taken
            if freezer.loop is not None and freezer.loop.waits:
                raise SnapshotError(
                    f"One rank waits in guard.save() before step {here.step}, another one has gone on",
                    "Call guard.save() in every rank, at the same step.",
                )
        elif deadline.left_s() <= 0:
            raise SnapshotError(
                "This rank has not come to where the others stand", "The previous snapshot stays the newest."
            )
        _go_on(freezer, there)
        time.sleep(_BETWEEN_S)


def _go_on(freezer: Freezer, there: Place) -> None:
    """Let the training go on, and stop at its first boundary from ``there`` on."""
    with freezer.news:
        if (loop := freezer.loop) is not None:
            loop.wanted_from = first_step(there, freezer.begun)
            loop.wanted = freezer.gate.attention = True
        freezer.gate.let_go_if_held()


def first_step(there: Place, begun: int) -> int:
    """Return the step from which on the ``begun``-th loop is at ``there``, or later."""
    return there.step if begun == there.loop else _NEVER if begun < there.loop else 0
