"""What freezing and restoring a training give back."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.core.snapshot import Position


@dataclass(frozen=True)
class Frozen:
    """A state, the position it belongs to (None: unknown), and a sentence for each thing that is not exact.

    ``cut_off``: the patience was over before the step that runs.
    """

    state: State
    position: Position | None
    inexact: tuple[str, ...]
    cut_off: bool = False


@dataclass(frozen=True)
class RestoreReport:
    """What a restore did. ``position``: where its loop goes on (None: the snapshot has none); ``waits``: the state is
    loaded when that loop begins; ``left_out``: a line for each part that no live object took; ``unclaimed``: kept
    values that wait for a ``keep`` of their name; ``tensors``: how many were loaded, where only a part was."""

    position: Position | None
    waits: bool = False
    left_out: tuple[str, ...] = ()
    unclaimed: tuple[str, ...] = ()
    tensors: int | None = None
