"""The save that a notice asks for: as much as fits the time that is left, and what the kernel comes back to."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from jupyter_paddle_gpu.core.budget import Part, patience_s, what_fits
from jupyter_paddle_gpu.core.errors import PaddleGpuError, SnapshotError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome, Served, Snapshot
from jupyter_paddle_gpu.core.units import format_duration, format_size
from jupyter_paddle_gpu.kernel.comeback import Mark, leave_mark
from jupyter_paddle_gpu.kernel.protection import Protection, name_of

JUST_S = 1.0  # before a notice: what is kept has not changed much since


class Rescue:
    """What eviction.Saver asks for, from this process's protection."""

    def __init__(self, protection: Protection) -> None:
        self._protection = protection

    def save_for(self, notice: EvictionNotice, remaining_s: float, then: Callable[[Served], None]) -> Served:
        """Save for this notice (see eviction.Saver)."""
        protection = self._protection
        if (waiting := protection.not_yet_restored()) is not None:  # evicted again before the restore
            return _served(waiting, 0.0, f"{name_of(waiting)} was not restored yet and stays the newest snapshot")
        if not protection.has_anything():
            return Served(SaveOutcome.NOTHING, detail="nothing to save")
        begun_s = time.monotonic()
        if (last := protection.last) is not None:
            with contextlib.suppress(OSError):
                self._mark(notice, last)  # should this save fail or not end in time
        if protection.company is not None:
            return protection.company.save_for(
                notice, remaining_s, lambda snapshot: self._leave(notice, snapshot, begun_s), then
            )
        with protection.alone(remaining_s):  # one that runs ends first: it takes no longer than ours would
            return self._save(notice, begun_s, begun_s + remaining_s, then)

    def _save(self, notice: EvictionNotice, begun_s: float, end_s: float, then: Callable[[Served], None]) -> Served:
        protection, left_s = self._protection, end_s - time.monotonic()
        save_s, trained_s = protection.estimate().seconds, protection.estimate_trained().seconds
        part = what_fits(save_s, trained_s, left_s, earlier=protection.last is not None)
        kept_moved = protection.kept_names() and protection.saved_s < begun_s - JUST_S
        if part is Part.NOTHING and protection.last is not None and (protection.moved() or not kept_moved):
            if protection.moved():
                raise self._no_time(trained_s or 0.0, left_s)
            served = self._leave(notice, protection.last, begun_s)  # another one would be the same
            then(served)
            return served
        all_of_it = part is not Part.TRAINED
        patience = patience_s(left_s, save_s if all_of_it else trained_s)
        with protection.saving(notice.cause, patience, frozen_too=all_of_it) as (_, snapshot):
            served = self._leave(notice, snapshot, begun_s)
            then(served)
        return served

    def _no_time(self, trained_s: float, left_s: float) -> SnapshotError:
        protection = self._protection
        lost = protection.training.updates - protection.saved_updates
        size = format_size(protection.estimate_trained().nbytes)
        return SnapshotError(
            f"{size} take about {format_duration(trained_s)} of the {format_duration(left_s)} that were left; "
            f"{lost} update{'' if lost == 1 else 's'} since the last snapshot are lost",
            "Ask for a longer grace, or for snapshots more often: %paddle_gpu request --grace, --every.",
        )

    def _leave(self, notice: EvictionNotice, snapshot: Snapshot, begun_s: float) -> Served:
        """This snapshot is what the kernel comes back to."""
        self._mark(notice, snapshot)
        return _served(snapshot, time.monotonic() - begun_s, f"{self._what(snapshot)} saved")

    def _mark(self, notice: EvictionNotice, snapshot: Snapshot) -> None:
        protection = self._protection
        if protection.session is not None and notice.cause not in (Cause.SHUTDOWN, Cause.DRILL):
            leave_mark(protection.directory, Mark(protection.session, snapshot.path.name))

    def _what(self, snapshot: Snapshot) -> str:
        if snapshot.step is not None:
            return name_of(snapshot)
        return "training" if self._protection.training.has_training() else "kept values"

    def newest(self) -> str:
        """Return a clause about what a restore would use now."""
        try:
            snapshot = next(iter(self._protection.store.list()), None)
        except PaddleGpuError as error:
            return error.fault
        return f"{name_of(snapshot)} is the newest snapshot" if snapshot else "there is no snapshot"


def _served(snapshot: Snapshot, seconds: float, detail: str) -> Served:
    return Served(SaveOutcome.SAVED, snapshot.path, snapshot.step, seconds, detail)
