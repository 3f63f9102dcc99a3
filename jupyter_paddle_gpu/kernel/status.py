"""What the guard knows about itself, to show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.checkpoint import where
from jupyter_paddle_gpu.core.snapshot import Snapshot

if TYPE_CHECKING:
    from jupyter_paddle_gpu.kernel.runtime import Runtime


@dataclass(frozen=True)
class GuardStatus:
    """``nbytes`` is the state's size, ``save_s`` what a save would take (None: not measured yet), ``trained_s`` one
    without the frozen weights, ``grace_s`` the time that a notice leaves, ``every_s`` the time between two snapshots
    that the training makes by itself (None: it makes none) and ``periodic_fault`` why the last of those failed; ``due``
    is the snapshot that the next ``guard.steps`` restores; ``limits`` says what is wrong with quota and number of
    snapshots."""

    directory: Path
    protecting: bool
    session: str | None
    connected: bool
    training: bool
    unsaved: bool
    kept: tuple[str, ...]
    nbytes: int
    save_s: float | None
    trained_s: float | None
    grace_s: float
    every_s: float | None
    periodic_fault: str
    newest: Snapshot | None
    due: Snapshot | None
    limits: tuple[str, ...] = ()


def look(runtime: Runtime) -> GuardStatus:
    """Return the present state; touches neither the training nor the disk beyond the list of snapshots."""
    protection, training = runtime.protection, runtime.training
    over = protection.store.over_quota(training.nbytes())
    return GuardStatus(
        directory=protection.directory,
        protecting=runtime.protecting,
        session=runtime.identity.session,
        connected=runtime.link is not None and runtime.link.connected,
        training=training.has_training(),
        unsaved=protection.unsaved(),
        kept=protection.kept_names(),
        nbytes=training.nbytes(),
        save_s=protection.estimate().seconds,
        trained_s=protection.estimate_trained().seconds,
        grace_s=runtime.grace(),
        every_s=runtime.periodic.interval_s(),
        periodic_fault=str(runtime.periodic.fault or ""),
        newest=next(iter(protection.store.list()), None),
        due=protection.due(),
        limits=(*where.limits().faults, *([" ".join(over)] if over else [])),
    )
