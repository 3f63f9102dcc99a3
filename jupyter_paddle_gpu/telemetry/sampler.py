"""One thread that looks at devices and host while somebody wants to see, so that a slow driver holds nobody up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.telemetry.host import HostReader

SHORTEST_PERIOD_S = 0.05


class Sampler:
    """Reads the devices in ``wanted`` (None: all of the machine) every so often and gives each Reading to ``report``.

    ``report`` is called in the sampler's thread, and never after ``close``; it must not block. Nothing is opened, and
    no thread runs, before the first ``watch``. ``disk``: see HostReader.
    """

    def __init__(
        self, wanted: Collection[str] | None, report: Callable[[Reading], None], disk: Path | None = None
    ) -> None:
        self._wanted = wanted
        self._disk = disk
        self._report = report
        self._changed = threading.Condition()
        self._period_s = 0.0
        self._closed = False
        self._thread: threading.Thread | None = None

    def watch(self, period_s: float) -> None:
        """Look every ``period_s`` from now on, the first time at once; 0: nobody looks any more. Does not block."""
        with self._changed:
            self._period_s = max(period_s, SHORTEST_PERIOD_S) if period_s > 0 else 0.0
            if self._thread is None and self._period_s and not self._closed:
                # A daemon: a driver that hangs in a call must not hold up the end of its process.
                self._thread = threading.Thread(target=self._run, name="paddle-gpu-sampler", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Report nothing any more; the thread ends when the driver's present call does. May be repeated."""
        with self._changed:
            self._closed, self._period_s = True, 0.0
            self._changed.notify()

    def _run(self) -> None:
        from jupyter_paddle_gpu.telemetry.gpus import GpuReader  # pynvml, which a process that is not watched needs not

        host = HostReader(self._disk)
        with GpuReader(self._wanted) as gpus:
            while self._is_wanted():
                at_s, clock_s = time.time(), time.monotonic()
                samples, fault = gpus.read(at_s, clock_s)
                reading = Reading(at_s, samples, fault, host.read(clock_s))
                with self._changed:
                    if not self._closed and self._period_s:
                        self._report(reading)
                        self._changed.wait(self._period_s)

    def _is_wanted(self) -> bool:
        """Wait until somebody looks (True) or the sampler is closed (False)."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._period_s > 0)
            return not self._closed
