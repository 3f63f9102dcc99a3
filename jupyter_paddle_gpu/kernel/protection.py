"""What this process protects: its training, what the user keeps, and the snapshots they go to."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.checkpoint.progress import progress
from jupyter_paddle_gpu.checkpoint.training import Frozen, RestoreReport, Training
from jupyter_paddle_gpu.core.budget import Estimate, estimate
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.ranks import Terms
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.kernel.comeback import read_mark, remove_mark
from jupyter_paddle_gpu.kernel.shadow import without_users_directory

if TYPE_CHECKING:
    from jupyter_paddle_gpu.checkpoint.draft import Draft
    from jupyter_paddle_gpu.checkpoint.store import Store
    from jupyter_paddle_gpu.kernel.company import Company

log = logging.getLogger(__name__)

FROZEN_LEFT_OUT = "the weights that do not train are not in it, for want of time: load them as before"
RANKS_PATIENCE_S = 20.0  # ranks come to guard.save() one after the other; gloo gives up a collective after 30 s
PATIENCE_S = 10.0  # for a safe moment, when the user asks for a snapshot and nothing presses


class Protection:
    """One per process. ``directory`` takes the snapshots; ``session`` is this kernel's (None: not ours).

    ``always_resume``: go on from the newest snapshot whoever left it, as a script does.
    """

    def __init__(self, training: Training, directory: Path, session: str | None, always_resume: bool = False) -> None:
        self.training = training
        self.session = session
        self.company: Company | None = None  # the other ranks of this training; None: it is alone
        self._saving = threading.Lock()
        self.on_saved: Callable[[Snapshot], None] = lambda snapshot: None  # called by whichever thread has saved
        self.on_restored: Callable[[Snapshot, float], None] = lambda snapshot, seconds: None
        self.use(directory, always_resume)

    def use(self, directory: Path, always_resume: bool = False) -> None:
        """Save to and restore from this directory from now on."""
        self.directory = directory
        self._store: Store | None = None
        self.always_resume = always_resume
        self._settled = False  # whether the question of going on from an earlier snapshot is answered
        self.saved_updates = 0
        self.saved_s = 0.0  # when the last save ended, on the monotonic clock
        self.last: Snapshot | None = None  # what this run has saved, or gone on from

    @property
    def store(self) -> Store:
        """The snapshots."""
        return self.open()

    def open(self) -> Store:
        """Open the store; repeatable. It is loaded when first asked for, not when a kernel starts."""
        if self._store is None:
            with without_users_directory():
                from jupyter_paddle_gpu.checkpoint.store import open_store

            self._store = open_store(self.directory, self.company.world if self.company is not None else None)
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

    def to_go_on_from(self) -> Snapshot | None:
        """Return ``due()``, and with other ranks what rank 0 has chosen for all, waited for. Raises SnapshotError."""
        if self.company is None or self._settled or not self.always_resume:
            return self.due()
        return self.company.go_on_from(self.due())

    @property
    def leads(self) -> bool:
        """Whether this process decides when a snapshot is made by itself."""
        return self.company is None or self.company.world.main

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
        begun_s = time.monotonic()
        total = next((item.nbytes for item in self.store.list() if snapshot in (None, item, item.path)), 0)
        with progress("read", total) as tell:
            used, state = self.store.load(snapshot, tell)
        if self.company is not None and not self._settled:
            self.company.restored(used.path.name)
        report = self.training.restore_part(state) if partial else self.training.restore(state)
        self._settled = True
        self.saved_updates = self.training.updates
        self.last = None if partial else used
        remove_mark(self.directory)
        self.on_restored(used, time.monotonic() - begun_s)
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
        return self.training.updates > self.saved_updates

    def unsaved(self) -> bool:
        """Whether something would be lost: a training that moved since the last snapshot, or kept values."""
        return self.moved() or self.kept_names() != ()

    def estimate(self) -> Estimate:
        """What a save would take now."""
        nbytes = self.training.nbytes()
        to_write = self.store.to_write(nbytes, self.training.frozen_nbytes())
        return estimate(nbytes, self.store.rate, to_write=to_write, measured_bytes=self.store.rate_bytes)

    def estimate_trained(self) -> Estimate:
        """What a save of what trains alone would take now."""
        nbytes = self.training.nbytes() - self.training.frozen_nbytes()
        return estimate(nbytes, self.store.rate, measured_bytes=self.store.rate_bytes)

    def save(self, cause: Cause, patience: float = PATIENCE_S, whole: bool = False) -> Snapshot:
        """Save at a safe moment, waited for at most ``patience`` seconds.

        ``whole``: rather not at all than what no boundary came for. Raises SnapshotError where there is nothing to
        save, StoreUnwritable where the directory refuses. With other ranks all save together, at one step.
        """
        if self.company is not None:
            self._need_anything()
            return self.company.save(Terms(cause, RANKS_PATIENCE_S))
        with self.alone(patience):
            with self.training.frozen(patience) as frozen:
                if whole and frozen.cut_off:
                    raise SnapshotError(f"No safe moment came within {patience:g} s", "It is tried again.")
                updates, draft = self.training.updates, self._write(frozen, cause)
            snapshot = draft.commit()  # the training goes on while the disk is busy
            self.saved(updates, snapshot)
            return snapshot

    @contextmanager
    def saving(self, cause: Cause, patience: float, frozen_too: bool = True) -> Iterator[tuple[Frozen, Snapshot]]:
        """Save as ``save`` does; the training stands still until the block ends. ``frozen_too``: also what does not
        train. To be called where ``alone`` holds."""
        if self.company is not None:
            raise SnapshotError("A drill is for a training in one process", "Save with guard.save() in all ranks.")
        with self.training.frozen(patience) as frozen:
            updates, snapshot = self.training.updates, self._write(frozen, cause, frozen_too).commit()
            self.saved(updates, snapshot)
            yield frozen, snapshot

    def _write(self, frozen: Frozen, cause: Cause, frozen_too: bool = True) -> Draft:
        if not frozen_too:
            inexact = (*frozen.inexact, FROZEN_LEFT_OUT)
            frozen = dataclasses.replace(frozen, state=frozen.state.without_frozen(), inexact=inexact)
        with progress("saved", frozen.state.nbytes) as tell:
            return self.begin(frozen, cause, tell)

    def begin(self, frozen: Frozen, cause: Cause, tell: Callable[[int], None]) -> Draft:
        """Hand a snapshot's bytes to the operating system. Raises as Store.write; ``tell`` gets the bytes written."""
        return self.store.write(
            frozen.state,
            position=frozen.position,
            cause=cause,
            inexact=frozen.inexact,
            session=self.session or "",
            progress=tell,
        )

    def saved(self, updates: int, snapshot: Snapshot | None = None) -> None:
        """The state after this many updates is in a snapshot (None: of all ranks, which the first one makes)."""
        if snapshot is None or snapshot.cause is not Cause.DRILL:  # that one goes again at once
            self.saved_updates, self.saved_s = updates, time.monotonic()
            self.last = snapshot or self.last
            if snapshot is not None:
                self.on_saved(snapshot)

    def _need_anything(self) -> None:
        if not self.has_anything():
            raise SnapshotError(
                "There is nothing to save: no training has run and nothing is kept",
                "Train a step, or keep a value: %paddle_gpu keep NAME.",
            )

    @contextmanager
    def alone(self, patience: float) -> Iterator[None]:
        """Let no other save run, waited for at most ``patience`` seconds. Raises SnapshotError where there is nothing
        to save, or another one is still running."""
        self._need_anything()
        if not self._saving.acquire(timeout=max(patience, 0.001)):
            raise SnapshotError("Another save is still running", "Wait for it; its snapshot will be the newest.")
        try:
            yield
        finally:
            self._saving.release()


def name_of(snapshot: Snapshot) -> str:
    """Return how people call this snapshot: ``step 1200``."""
    if snapshot.step is not None:
        return f"step {snapshot.step}"
    return f"snapshot {snapshot.path.name}"
