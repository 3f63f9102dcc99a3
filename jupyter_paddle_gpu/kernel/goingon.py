"""Where a training begins: at the snapshot that this process goes on from, or anew, and what is said of it."""

from __future__ import annotations

from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.kernel.comeback import offer
from jupyter_paddle_gpu.kernel.protection import Protection, name_of
from jupyter_paddle_gpu.kernel.telling import left_open, say


class GoingOn:
    """One per process."""

    def __init__(self, protection: Protection) -> None:
        self._protection = protection
        self._offered = False

    def go_on(self) -> None:
        """Restore the snapshot that this process goes on from by itself; say what there is otherwise.

        Raises SnapshotError in a script whose snapshots are broken or belong to another model. In a notebook that is
        told only: its model may come in a later cell.
        """
        protection = self._protection
        due = protection.to_go_on_from()
        if due is None:
            self.offer_once()
            protection.settle()
            return
        try:
            used, report = protection.restore(None if protection.leads else due)
        except SnapshotError as error:
            if protection.always_resume:
                raise
            say(f"{error}\nThis training starts from its beginning; the snapshot stays.")
            return
        source = f" from {used.path}" if protection.always_resume else ""
        said = f"{name_of(used)} restored{source}; the training goes on from there"
        say("\n".join([said, left_open(report)]).strip())

    def after_cell(self) -> None:
        """A plain loop that begins beside an earlier run's snapshot is told of it when its first cell has ended."""
        if not self._offered and self._protection.training.has_training():
            self.offer_once()

    def offer_once(self) -> None:
        """Tell of an earlier run's snapshot, once."""
        if self._offered:
            return
        self._offered = True
        if (snapshot := self._protection.offered()) is not None:
            say(offer(snapshot))
