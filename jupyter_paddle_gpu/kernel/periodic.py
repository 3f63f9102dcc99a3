"""Snapshots that a training makes by itself: all that is left after an end without a notice."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from jupyter_paddle_gpu.core.budget import every_s
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.request import MIN_EVERY_S
from jupyter_paddle_gpu.kernel.protection import Protection

log = logging.getLogger(__name__)

TICK_S = 2.0  # between two looks at whether one is due
_PATIENCE_S = 1.0  # a notice that comes meanwhile waits as long


class Periodic:
    """One per process. ``every`` gives the seconds between two snapshots: None: as long as their cost asks; 0: none."""

    def __init__(self, protection: Protection, every: Callable[[], float | None]) -> None:
        self._protection = protection
        self._every = every
        self._moving_since_s: float | None = None  # on the monotonic clock
        self._over = threading.Event()
        self.fault: PaddleGpuError | None = None  # why the last one failed; None: it did not

    def start(self) -> None:
        """Look from now on, in a thread, until ``stop``."""
        threading.Thread(target=self._run, name="paddle-gpu-periodic", daemon=True).start()

    def stop(self) -> None:
        """Begin no snapshot any more. Repeatable."""
        self._over.set()

    def interval_s(self) -> float | None:
        """Return the seconds between two snapshots as things are now; None: none are made."""
        every = self._every()
        if every == 0:
            return None
        return every_s(self._protection.estimate().seconds) if every is None else every

    def _run(self) -> None:
        while not self._over.wait(TICK_S):
            if self.due(time.monotonic()):
                self._save()

    def due(self, now_s: float) -> bool:
        """Whether it is time for one at ``now_s``, on the monotonic clock: nothing is saved where nothing moved."""
        protection = self._protection
        if not protection.leads or not protection.moved() or protection.not_yet_restored() is not None:
            self._moving_since_s = None
            return False
        if self._moving_since_s is None:
            self._moving_since_s = now_s
        waited_s = now_s - max(self._moving_since_s, protection.saved_s)
        if waited_s < MIN_EVERY_S:
            return False
        interval_s = self.interval_s()
        return interval_s is not None and waited_s >= interval_s

    def _save(self) -> None:
        try:
            self._protection.save(Cause.PERIODIC, _PATIENCE_S, whole=True)
        except PaddleGpuError as error:
            if str(error) != str(self.fault):
                log.warning("No snapshot was made by itself: %s", error)
            self.fault = error
        else:
            self.fault = None
