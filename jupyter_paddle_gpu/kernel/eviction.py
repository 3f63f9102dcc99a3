"""Serves a notice: save, end the running work, answer, end the process — in time, and once."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from jupyter_paddle_gpu.core import evicted
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome, Served

log = logging.getLogger(__name__)

# What an eviction has come to: the notice, its end on the monotonic clock, the answer (None: not yet), the sentence.
Told = Callable[[EvictionNotice, float, "Served | None", str], None]

_LAST_SHARE, _LAST_S = 0.2, 1.0  # of the grace, kept for telling clients: a fifth, at most a second


class Saver(Protocol):
    """Who saves: called once for each notice, in a thread of its own."""

    def save_for(self, notice: EvictionNotice, remaining_s: float, then: Callable[[Served], None]) -> Served:
        """Save at a safe moment and call ``then`` with the result before the training may run on.

        Raises PaddleGpuError when nothing could be saved.
        """
        ...

    def newest(self) -> str:
        """Return ``step 1100 is the newest snapshot``, or that there is none."""
        ...


class Ending(Protocol):
    """How this kind of process stops its work and ends."""

    def stop_training(self, text: str) -> None:
        """Let the training end with ``text`` where it stands next; called while it cannot move."""
        ...

    def finish(self, text: str, timeout_s: float) -> None:
        """End what runs, and tell everybody who waits for it. Returns when they are told, or after ``timeout_s``."""
        ...

    def leave(self, timeout_s: float) -> None:
        """End the process with EXIT_EVICTED, within ``timeout_s``. Does not return."""
        ...

    def end_exit(self, served: Callable[[], object]) -> None:
        """The main thread is ending the process by itself: wait with ``served``, then see to the exit code."""
        ...


class Eviction:
    """The one place where notices arrive, from whichever source and thread.

    The first is served in a thread of its own. Later ones only shorten its time: an eviction has one save and one end.
    A played one (cause DRILL) saves and answers, and nothing ends. ``answer`` passes the result on; ``comes_back`` says
    whether somebody will start this work again. ``told`` may be set: it is called when the eviction begins, has less
    time, and before it ends what runs; it must return at once and raise nothing.
    """

    def __init__(self, saver: Saver, ending: Ending, answer: Callable[[Served], None], comes_back: bool) -> None:
        self._saver = saver
        self._ending = ending
        self._answer = answer
        self._comes_back = comes_back
        self.told: Told = lambda notice, end_s, served, text: None
        self._changed = threading.Condition()
        self._end_s: float | None = None  # on the monotonic clock
        self._saved: Served | None = None
        self._over = threading.Event()
        self._pid = os.getpid()

    @property
    def begun(self) -> bool:
        """Whether this process is being evicted."""
        return self._end_s is not None

    def notice(self, notice: EvictionNotice) -> None:
        """Take a notice and return at once."""
        if notice.cause is Cause.DRILL:
            threading.Thread(target=self._play, args=(notice,), name="paddle-gpu-drill", daemon=True).start()
            return
        end_s = time.monotonic() + notice.remaining_s
        with self._changed:
            first = self._end_s is None
            self._end_s = end_s if self._end_s is None else min(self._end_s, end_s)
            self._changed.notify_all()
        if self._saved is None:
            self.told(notice, self._end_s, None, "")
        if first:
            threading.Thread(target=self._serve, args=(notice,), name="paddle-gpu-eviction", daemon=True).start()

    def at_exit(self) -> None:
        """For ``atexit``: hold an ending process while a notice is being served, for the time that it has."""
        if self.begun and os.getpid() == self._pid:
            self._ending.end_exit(self._wait_for_the_end)

    def _wait_for_the_end(self) -> None:
        while not self._over.is_set() and self._remaining_s() > 0:
            with contextlib.suppress(BaseException):  # Ctrl-C once more: the save goes on
                self._over.wait(self._remaining_s())

    def _play(self, notice: EvictionNotice) -> None:
        self._answer(self._save(notice, notice.remaining_s, lambda served: None))

    def _serve(self, notice: EvictionNotice) -> None:
        last_s = min(_LAST_S, _LAST_SHARE * notice.remaining_s)
        try:
            self._answer(self._save_and_tell(notice, last_s))
        finally:
            self._over.set()
            self._ending.leave(max(last_s, self._remaining_s()))

    def _save_and_tell(self, notice: EvictionNotice, last_s: float) -> Served:
        threading.Thread(target=self._save_in_time, args=(notice,), name="paddle-gpu-save", daemon=True).start()
        with self._changed:
            while self._saved is None and self._remaining_s() > last_s:
                self._changed.wait(self._remaining_s() - last_s)
            served = self._saved
        text = self._describe(notice, served)
        log.debug("Evicted: %s", text)
        self.told(notice, self._end_s or 0.0, served, text)
        self._ending.finish(text, max(last_s, min(5.0, self._remaining_s() / 2)))
        with self._changed:  # told in time; a save that is late goes on until it ends or the process is killed
            while self._saved is None:
                self._changed.wait()
            return self._saved

    def _save_in_time(self, notice: EvictionNotice) -> None:
        saved = self._save(
            notice, self._remaining_s(), lambda served: self._ending.stop_training(self._describe(notice, served))
        )
        with self._changed:
            self._saved = saved
            self._changed.notify_all()

    def _save(self, notice: EvictionNotice, remaining_s: float, then: Callable[[Served], None]) -> Served:
        begun_s = time.monotonic()
        try:
            return self._saver.save_for(notice, remaining_s, then)
        except PaddleGpuError as error:
            fault = str(error)
        except Exception as error:
            log.exception("The save failed")
            fault = f"{type(error).__name__}: {error}"
        return Served(SaveOutcome.FAILED, seconds=time.monotonic() - begun_s, detail=fault)

    def _describe(self, notice: EvictionNotice, served: Served | None) -> str:
        if served is None:
            saved = f"the save did not end in time ({self._saver.newest()})"
        elif served.outcome is SaveOutcome.FAILED:
            saved = evicted.what_was_saved(served, self._saver.newest())
        else:
            saved = evicted.what_was_saved(served)
        cpu = os.environ.get("CUDA_VISIBLE_DEVICES") == ""
        return evicted.sentence(saved, notice, cpu, self._comes_back)

    def _remaining_s(self) -> float:
        return max(0.0, (self._end_s or 0.0) - time.monotonic())
