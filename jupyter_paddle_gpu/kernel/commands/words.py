"""Sentences about saves and snapshots that several commands share."""

from __future__ import annotations

import math

from jupyter_paddle_gpu.checkpoint.words import age, what
from jupyter_paddle_gpu.core.request import MAX_GRACE_S
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.core.units import format_duration, format_size
from jupyter_paddle_gpu.kernel.status import GuardStatus


def prediction(guard: GuardStatus, grace_s: float) -> str:
    """Return what a save would take: ``2.1 GB, 4 s of 60 s``."""
    nbytes, save_s = guard.nbytes, guard.save_s
    if not guard.training and not guard.kept:
        return "nothing to save yet"
    if save_s is None:
        return f"{format_size(nbytes)}; the first save measures the time"
    return f"{format_size(nbytes)}, {format_duration(save_s)} of {format_duration(grace_s)}"


def too_short(guard: GuardStatus, grace_s: float) -> list[str]:
    """Return a warning where a save would not fit the grace, with the grace that would do; else nothing."""
    nbytes, save_s = guard.nbytes, guard.save_s
    if save_s is None or save_s <= grace_s:
        return []
    enough_s = min(math.ceil(save_s * 1.5), int(MAX_GRACE_S))
    do = f"%paddle_gpu request --grace {enough_s}s would do" if enough_s > save_s else "no grace is as long; keep less"
    if guard.trained_s is not None and guard.trained_s <= grace_s:
        else_ = f"else only what trains is saved ({format_duration(guard.trained_s)})"
    else:
        else_ = "else " + ("the last snapshot stays, and what came after it is lost" if guard.newest else "all is lost")
    return [
        f"A grace of {format_duration(grace_s)} is too short for a save of {format_size(nbytes)} "
        f"({format_duration(save_s)}): {do}; {else_}."
    ]


def last_snapshot(snapshot: Snapshot | None) -> str:
    """Return step, age and cause of a snapshot."""
    return "none yet" if snapshot is None else f"{what(snapshot)}, {age(snapshot)} ago, {snapshot.cause.value}"
