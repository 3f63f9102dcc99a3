"""What this process protects: its training, what the user keeps, and the snapshots they go to."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.checkpoint.progress import progress
from jupyter_paddle_gpu.checkpoint.training import Frozen, RestoreReport, Training
from jupyter_paddle_gpu.checkpoint.where import limits
from jupyter_paddle_gpu.core.budget import Estimate, estimate, patience_s
from jupyter_paddle_gpu.core.errors import PaddleGpuError, SnapshotError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome, Served, Snapshot
from jupyter_paddle_gpu.kernel.comeback import Mark, leave_mark, read_mark, remove_mark
from jupyter_paddle_gpu.kernel.shadow import without_users_directory

if TYPE_CHECKING:
    from jupyter_paddle_gpu.checkpoint.draft import Draft
    from jupyter_paddle_gpu.checkpoint.store import Store

log = logging.getLogger(__name__)

PATIENCE_S = 10.0  # for a safe moment, when the user asks for a snapshot and nothing presses


class Protection:
    """One per process. ``directory`` takes the snapshots; ``session`` is this kernel's (None: not ours).

    ``always_resume``: go on from the newest snapshot whoever left it, as a script does.
    """

    def __init__(self, training: Training, directory: Path, session: str | None, always_resume: bool = False) -> None:
        self.training = training
        self.session = session
        self._saving = threading.Lock()
        self.use(directory, always_resume)

    def use(self, directory: Path, always_resume: bool = False) -> None:
        """Save to and restore from this directory from now on."""
        self.directory = directory
        self._store: Store | None = None
        self.always_resume = always_resume
        self._settled = False  # whether the question of going on from an earlier snapshot is answered
        self._saved_updates = 0
        self.saved_s = 0.0  # when the last save ended, on the monotonic clock

    @property
    def store(self) -> Store:
        """The snapshots."""
        return self.open()

    def open(self) -> Store:
        """Open the store; repeatable. It is loaded when first asked for, not when a kernel starts."""
        if self._store is None:
            with without_users_directory():
                from jupyter_paddle_gpu.checkpoint.store import Store

            allowed = limits()
            self._store = Store(self.directory, allowed.keep, allowed.quota_bytes)
        return self._store

    # Going on

    def due(self) -> Snapshot | None:
        """Return the snapshot that this process goes on from by itself and has not yet; None: there is none."""
        if self._settled:
            return None
        mark = read_mark(self.directory)
        if not self.always_resume and (mark is None or self.session is None or mark.session != self.session):
            return None
        return next(iter(self.store.list()), None)

    def not_yet_restored(self) -> Snapshot | None:
        """Return the snapshot that is due while nothing has been trained without it: saving now would lose by it."""
        return self.due() if self.training.updates == 0 else None

    def offered(self) -> Snapshot | None:
        """Return the newest snapshot of an earlier run, which only the user can ask for; None: there is none."""
        if self._settled or self.saved_s or self.always_resume or self.due() is not None:
            return None
        return next(iter(self.store.list()), None)

    def settle(self) -> None:
        """This run has begun on its own: earlier snapshots stay, and are not spoken of again."""
        self._settled = True

    def restore(self, snapshot: Snapshot | Path | None = None, partial: bool = False) -> tuple[Snapshot, RestoreReport]:
        """Restore the given snapshot, or the newest good one; ``partial``: what fits of it.

        Raises SnapshotNotFound, SnapshotCorrupt, SnapshotMismatch; nothing is half-loaded.
        """
        total = next((item.nbytes for item in self.store.list() if snapshot in (None, item, item.path)), 0)
        with progress("read", total) as tell:
            used, state = self.store.load(snapshot, tell)
        report = self.training.restore_part(state) if partial else self.training.restore(state)
        self._settled = True
        self._saved_updates = self.training.updates
        remove_mark(self.directory)
        return used, report

    # Saving

    def has_anything(self) -> bool:
        """Whether there is something to save."""
        return self.training.has_training() or self.kept_names() != ()

    def kept_names(self) -> tuple[str, ...]:
        """Return the names of what the user keeps, without loading what keeping takes."""
        return tuple(self.training.kept) if "kept" in vars(self.training) else ()

    def moved(self) -> bool:
        """Whether the training has moved since the last snapshot."""
        return self.training.updates > self._saved_updates

    def unsaved(self) -> bool:
        """Whether something would be lost: a training that moved since the last snapshot, or kept values."""
        return self.moved() or self.kept_names() != ()

    def estimate(self) -> Estimate:
        """What a save would take now."""
        return estimate(self.training.nbytes(), self.store.rate)

    def save(self, cause: Cause, patience: float = PATIENCE_S, whole: bool = False) -> Snapshot:
        """Save at a safe moment, waited for at most ``patience`` seconds.

        ``whole``: rather not at all than what no boundary came for. Raises SnapshotError where there is nothing to
        save, StoreUnwritable where the directory refuses.
        """
        with self._one_at_a_time(patience):
            with self.training.frozen(patience) as frozen:
                if whole and frozen.cut_off:
                    raise SnapshotError(f"No safe moment came within {patience:g} s", "It is tried again.")
                updates, draft = self.training.updates, self._write(frozen, cause)
            snapshot = draft.commit()  # the training goes on while the disk is busy
            self._saved(updates)
            return snapshot

    @contextmanager
    def saving(self, cause: Cause, patience: float) -> Iterator[tuple[Frozen, Snapshot]]:
        """Save as ``save`` does; the training stands still until the block ends."""
        with self._one_at_a_time(patience), self._saving_now(cause, patience) as saved:
            yield saved

    @contextmanager
    def _saving_now(self, cause: Cause, patience: float) -> Iterator[tuple[Frozen, Snapshot]]:
        with self.training.frozen(patience) as frozen:
            updates, snapshot = self.training.updates, self._write(frozen, cause).commit()
            self._saved(updates)
            yield frozen, snapshot

    def _write(self, frozen: Frozen, cause: Cause) -> Draft:
        with progress("saved", frozen.state.nbytes) as tell:
            return self.store.write(
                frozen.state,
                position=frozen.position,
                cause=cause,
                inexact=frozen.inexact,
                session=self.session or "",
                progress=tell,
            )

    def _saved(self, updates: int) -> None:
        self._saved_updates, self.saved_s = updates, time.monotonic()

    @contextmanager
    def _one_at_a_time(self, patience: float) -> Iterator[None]:
        if not self.has_anything():
            raise SnapshotError(
                "There is nothing to save: no training has run and nothing is kept",
                "Train a step, or keep a value: %paddle_gpu keep NAME.",
            )
        if not self._saving.acquire(timeout=max(patience, 0.001)):
            raise SnapshotError("Another save is still running", "Wait for it; its snapshot will be the newest.")
        try:
            yield
        finally:
            self._saving.release()

    # For an eviction

    def save_for(self, notice: EvictionNotice, remaining_s: float, then: Callable[[Served], None]) -> Served:
        """Save for this notice (see eviction.Saver)."""
        if (
            waiting := self.not_yet_restored()
        ) is not None:  # evicted again before the restore: what was saved is still the newest
            return _served(waiting, 0.0, f"{name_of(waiting)} was not restored yet and stays the newest snapshot")
        if not self.has_anything():
            return Served(SaveOutcome.NOTHING, detail="nothing to save")
        begun_s = time.monotonic()
        with self._one_at_a_time(remaining_s):  # one that runs ends first: it takes no longer than ours would
            save_s, left_s = self.estimate().seconds, remaining_s - (time.monotonic() - begun_s)
            if left_s < (save_s or 0.0) and not self.moved() and (snapshot := next(iter(self.store.list()), None)):
                served = self._leave(notice, snapshot, begun_s)  # no time for another, which would be the same
                then(served)
                return served
            with self._saving_now(notice.cause, patience_s(left_s, save_s)) as (_, snapshot):
                served = self._leave(notice, snapshot, begun_s)
                then(served)
        return served

    def _leave(self, notice: EvictionNotice, snapshot: Snapshot, begun_s: float) -> Served:
        """This snapshot is what the kernel comes back to."""
        if self.session is not None and notice.cause not in (Cause.SHUTDOWN, Cause.DRILL):
            leave_mark(self.directory, Mark(self.session, snapshot.path.name))
        return _served(snapshot, time.monotonic() - begun_s, f"{self._what(snapshot)} saved")

    def _what(self, snapshot: Snapshot) -> str:
        if snapshot.step is not None:
            return name_of(snapshot)
        return "training" if self.training.has_training() else "kept values"

    def newest(self) -> str:
        """Return a clause about what a restore would use now."""
        try:
            snapshot = next(iter(self.store.list()), None)
        except PaddleGpuError as error:
            return error.fault
        return f"{name_of(snapshot)} is the newest snapshot" if snapshot else "there is no snapshot"


def name_of(snapshot: Snapshot) -> str:
    """Return how people call this snapshot: ``step 1200``."""
    if snapshot.step is not None:
        return f"step {snapshot.step}"
    return f"snapshot {snapshot.path.name}"


def _served(snapshot: Snapshot, seconds: float, detail: str) -> Served:
    return Served(SaveOutcome.SAVED, snapshot.path, snapshot.step, seconds, detail)
