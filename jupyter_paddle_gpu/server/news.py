"""What a session's kernel tells of its training: how far it is, what it has saved and restored, what was lost."""

from __future__ import annotations

from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.core.wire import KernelSeen, Restored, Saved
from jupyter_paddle_gpu.server.view import RestoredView

News = Saved | Restored | KernelSeen


class TrainingNews:
    """Of one session, over all its kernels."""

    def __init__(self) -> None:
        self.saved: Snapshot | None = None
        self.restored: RestoredView | None = None
        self._step: int | None = None  # how far the training was when it was last heard of
        self._interrupted = False

    def interrupted(self) -> None:
        """The kernel has ended: what it restores next is what is left."""
        self._interrupted = True

    def hear(self, news: News, at_s: float) -> bool:
        """Take something in at ``at_s`` (Unix time); returns whether it is worth telling everybody."""
        match news:
            case KernelSeen(sample):
                self._step = self._step if sample.step is None else sample.step
                return False
            case Saved(snapshot):
                self.saved = snapshot
                self._step = self._step if snapshot.step is None else snapshot.step
            case Restored(snapshot, seconds):
                lost = None
                if self._interrupted and self._step is not None and snapshot.step is not None:
                    lost = max(0, self._step - snapshot.step)
                self.restored = RestoredView(snapshot.path.name, snapshot.step, at_s, seconds, lost)
                self._interrupted, self._step = False, snapshot.step
        return True
