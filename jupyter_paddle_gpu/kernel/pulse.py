"""What this kernel says of itself while it trains, in a thread that is mute while C code holds the interpreter."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from jupyter_paddle_gpu.core.telemetry import KernelSample
from jupyter_paddle_gpu.kernel.protection import Protection

log = logging.getLogger(__name__)

UNWATCHED_PERIOD_S = 30.0  # so that a server knows how far a training was that ended without a word
SIZE_PERIOD_S = 30.0  # the state's size changes rarely, and to look may mean to search the interpreter's memory


class Pulse:
    """One per kernel; ``tell`` is called in its thread: while nobody looks, with what has changed only."""

    def __init__(self, protection: Protection, tell: Callable[[KernelSample], None]) -> None:
        self._protection = protection
        self._tell = tell
        self._period_s = UNWATCHED_PERIOD_S
        self._changed = threading.Event()
        self._last = KernelSample(0.0)
        self._at = (time.monotonic(), protection.training.updates)
        self._sized_s = float("-inf")  # when the state's size was looked at, on the monotonic clock

    def start(self) -> None:
        """Look from now on, in a thread that ends with the process."""
        threading.Thread(target=self._run, name="paddle-gpu-pulse", daemon=True).start()

    def watch(self, period_s: float) -> None:
        """Look every ``period_s`` from now on, the first time at once; 0: nobody looks."""
        self._period_s = period_s or UNWATCHED_PERIOD_S
        self._changed.set()

    def _run(self) -> None:
        while True:
            self._changed.wait(self._period_s)
            self._changed.clear()
            try:
                sample = self.take(time.time(), time.monotonic())
                if replace(sample, taken_s=0.0) != replace(self._last, taken_s=0.0) or self._watched:
                    self._tell(sample)
                self._last = sample
            except Exception:  # a fault of ours must not end what is only shown
                log.exception("The kernel's own numbers are not known")

    @property
    def _watched(self) -> bool:
        return self._period_s < UNWATCHED_PERIOD_S

    def take(self, at_s: float, clock_s: float) -> KernelSample:
        """Return how things are at ``at_s`` (Unix time); ``clock_s`` is now on a clock that only grows."""
        training, (since_s, before) = self._protection.training, self._at
        updates = training.updates
        self._at = (clock_s, updates)
        rate = (updates - before) / (clock_s - since_s) if clock_s > since_s and training.has_training() else None
        return _with_memory(replace(self._sized(clock_s), taken_s=at_s, step=training.step(), steps_per_s=rate))

    def _sized(self, clock_s: float) -> KernelSample:
        """Return the last sample with the state's size and what a save takes; looked at while somebody looks only."""
        if not self._watched or clock_s - self._sized_s < SIZE_PERIOD_S or not self._protection.has_anything():
            return self._last
        self._sized_s = clock_s
        estimate = self._protection.estimate()
        return replace(self._last, state_bytes=estimate.nbytes, save_s=estimate.seconds)


def _with_memory(sample: KernelSample) -> KernelSample:
    """Add what Paddle's allocator says; unknown, with the reason, in a kernel that has not imported it."""
    if "paddle" not in sys.modules:
        return _without_memory(sample, "Paddle is not imported in this kernel")
    try:
        from jupyter_paddle_gpu.checkpoint.capture.allocator import memory

        device, allocated, reserved, peak = memory()
    except Exception as error:  # noqa: BLE001  # another version of Paddle, or one that is just being imported
        return _without_memory(sample, f"Paddle does not tell it: {error}")
    found = replace(sample, device=device, allocated_bytes=allocated, reserved_bytes=reserved, peak_bytes=peak)
    return replace(found, unknown={})


def _without_memory(sample: KernelSample, reason: str) -> KernelSample:
    unknown = dict.fromkeys(("allocated_bytes", "reserved_bytes", "peak_bytes"), reason)
    return replace(sample, allocated_bytes=None, reserved_bytes=None, peak_bytes=None, unknown=unknown)
