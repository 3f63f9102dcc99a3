"""What was taken of a training that stands still, composed to its state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.checkpoint.keep import Encoder
from jupyter_paddle_gpu.checkpoint.loop import Boundary
from jupyter_paddle_gpu.checkpoint.loops import LoopKey
from jupyter_paddle_gpu.checkpoint.reports import Frozen
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.core.snapshot import Position


@dataclass(frozen=True)
class Taken:
    """What is to be composed."""

    boundary: Boundary
    needed: set[int]
    position: Position | None
    current: LoopKey | None
    inexact: tuple[str, ...]
    cut_off: bool = False


def compose(taken: Taken, done: Iterable[LoopKey]) -> Frozen:
    """Return the state; the tensors that updates move are live memory. ``done``: the loops that are over."""
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
    structure["loop"] = Encoder("", tensors).encode(_loop_structure(taken, done), "loop")
    inexact = (*taken.inexact, *own_state(boundary.inventory), *kept.left_out)
    return Frozen(State(tensors, structure, frozen), taken.position, inexact, taken.cut_off)


def _loop_structure(taken: Taken, done: Iterable[LoopKey]) -> dict[str, Any]:
    boundary, position = taken.boundary, taken.position
    epoch = dict(boundary.epoch)
    if epoch:
        epoch["random"] = randoms.plain(epoch["random"])
    return {
        "done": _plain(done),
        "current": taken.current.plain() if taken.current else None,
        "position": [position.step, position.epoch, position.batch] if position else None,
        "random": randoms.plain(boundary.random),
        "epoch": epoch,
        "loader": boundary.loader,
    }


def own_state(inventory: Any) -> tuple[str, ...]:
    """Say what optimizers of the user's own keep where no snapshot looks."""
    if inventory is None:
        return ()
    return tuple(text for item in inventory.trained for text in randoms.paddle_side().optimizers.inexact(item))


def _plain(keys: Iterable[LoopKey]) -> list[list[object]]:
    return [key.plain() for key in keys]
