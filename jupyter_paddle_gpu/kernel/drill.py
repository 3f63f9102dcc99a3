"""An eviction that is only played: what it would take, and whether it would come back bit for bit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.kernel.protection import PATIENCE_S

if TYPE_CHECKING:
    from jupyter_paddle_gpu.kernel.runtime import Runtime


@dataclass(frozen=True)
class DrillReport:
    """``save_s`` and ``load_s`` in seconds; ``differences`` names what did not come back equal (empty: bit for bit);
    ``inexact`` what a resume could not make exact; ``fits``: whether the save ends within ``grace_s``."""

    step: int | None
    nbytes: int
    save_s: float
    load_s: float
    grace_s: float
    differences: tuple[str, ...]
    inexact: tuple[str, ...]

    @property
    def fits(self) -> bool:
        return self.save_s <= self.grace_s


def play(runtime: Runtime) -> DrillReport:
    """Save, read back while the training stands still, compare, and remove the played snapshot again."""
    protection = runtime.protection
    with protection.alone(PATIENCE_S), protection.saving(Cause.DRILL, PATIENCE_S) as (frozen, snapshot):
        begun_s = time.monotonic()
        _, loaded = protection.store.load(snapshot)
        load_s = time.monotonic() - begun_s
        differences = compare(frozen.state, loaded)
        protection.store.delete(snapshot)
    return DrillReport(
        snapshot.step, snapshot.nbytes, snapshot.seconds, load_s, runtime.grace(), differences, snapshot.inexact
    )


def compare(saved: State, loaded: State) -> tuple[str, ...]:
    """Return one line for each tensor or part of the structure that differs."""
    names = sorted(set(saved.tensors) | set(loaded.tensors))
    lines = [name for name in names if not _same(saved, loaded, name)]
    if dict(saved.structure) != dict(loaded.structure):
        lines.append("the structure")
    return tuple(lines)


def _same(saved: State, loaded: State, name: str) -> bool:
    one, other = saved.tensors.get(name), loaded.tensors.get(name)
    if one is None or other is None or (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    return one.data.cast("B") == other.data.cast("B") if one.nbytes else True
