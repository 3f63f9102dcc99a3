"""Hears SIGTERM wherever the program is, and whoever replaces its handler.

Python runs a handler only between two instructions of the main thread. The byte that it writes to the wakeup
descriptor comes at once, whatever Python handler is set: a thread reads it, and passes it on to an event loop that
wants it too. Handlers set below Python (paddle does it at its import) are noticed by that thread and replaced by
Python's own again.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import select
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from jupyter_paddle_gpu.core.errors import PaddleGpuError

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0
_FROM_HANDLER = b"\0"  # what our handler writes; no signal has this number
_SIGACTION_BYTES = 256  # struct sigaction has 152 on 64-bit Linux; it is kept and compared as a whole

Handler = Callable[[int, "FrameType | None"], Any]


class SigtermWatch:
    """Calls ``on_sigterm`` from a thread of its own, at least once for each SIGTERM of this process, at once.

    A forked child (a data-loading worker, say) has nothing of it: its own SIGTERM ends it as before.
    """

    def __init__(self, on_sigterm: Callable[[], None]) -> None:
        self._on_sigterm = on_sigterm
        self._handlers: list[Handler] = []  # of the user and of libraries, oldest first
        self._called: list[Handler] = []
        self._main_task: Callable[[], None] | None = None
        self._action: bytes | None = None
        self._reader, self._writer = os.pipe()
        self._event_loop = -1  # its wakeup descriptor
        self._set_real_wakeup_fd = signal.set_wakeup_fd
        self._hearing = threading.Lock()
        self._mask = threading.local()  # of the thread that forks
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)

    def install(self) -> None:
        """Begin to listen; in the main thread, where Python sets handlers."""
        self._take()
        signal.set_wakeup_fd = self._set_wakeup_fd  # asyncio calls it like this
        self._action = _sigaction(signal.SIGTERM)
        # A child that gets SIGTERM before it has left us behind would write into our pipe: it waits for that.
        os.register_at_fork(before=self._block, after_in_parent=self._unblock, after_in_child=self._leave_child)
        threading.Thread(target=self._listen, name="paddle-gpu-sigterm", daemon=True).start()

    def look_again(self) -> None:
        """Set our handler again where somebody replaced it; theirs is called after the save.

        Repeatable; outside the main thread, and before ``install``, it does nothing.
        """
        if self._action is not None and threading.current_thread() is threading.main_thread():
            self._take()
            self.take_back()

    def _take(self) -> None:
        found = signal.getsignal(signal.SIGTERM)
        if found != self._handle:
            signal.signal(signal.SIGTERM, self._handle)
            if callable(found) and found not in self._handlers:
                self._handlers.append(found)
        wakeup = self._set_real_wakeup_fd(self._writer, warn_on_full_buffer=False)
        if wakeup not in (-1, self._writer):
            self._event_loop = wakeup

    def take_back(self) -> None:
        """Undo a replacement below Python; from any thread."""
        if self._action is not None and _sigaction(signal.SIGTERM) != self._action:
            _sigaction(signal.SIGTERM, self._action)
            log.debug("SIGTERM is listened to again: a library had replaced its handler")

    def has_handlers(self) -> bool:
        """Whether somebody else's handler was there before ours, or has come since."""
        return bool(self._others())

    def call_handlers(self) -> None:
        """Call everybody else's handlers, each once. What they raise is logged: the process ends anyway."""
        for handler in self._others():
            self._called.append(handler)
            try:
                handler(signal.SIGTERM, None)
            except SystemExit:
                continue  # its code gives way to ours
            except Exception:
                log.exception("The SIGTERM handler %r failed", handler)

    def _others(self) -> list[Handler]:
        found = signal.getsignal(signal.SIGTERM)
        later = [found] if callable(found) and found != self._handle and found not in self._handlers else []
        return [handler for handler in [*self._handlers, *later] if handler not in self._called]

    def run_in_main_thread(self, task: Callable[[], None]) -> None:
        """Run ``task`` in the main thread at its next instruction, also out of a sleep; what it raises is raised there.

        Never comes to it while the main thread stays in one C call, or where somebody else holds SIGTERM.
        """
        self._main_task = task
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        task, self._main_task = self._main_task, None
        if task is not None:
            task()
            return
        with contextlib.suppress(BlockingIOError):  # full of wake-ups already
            os.write(self._writer, _FROM_HANDLER)

    def _listen(self) -> None:
        # Whoever started this process, or its main thread, may have blocked the signal: here it arrives all the same.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        while True:
            select.select([self._reader], [], [], LOOK_AGAIN_S)
            self.hear()
            self.take_back()

    def hear(self) -> None:
        """Take in what has come: the thread does it all the time, an ending main thread once more."""
        with self._hearing, contextlib.suppress(BlockingIOError):
            heard = os.read(self._reader, 4096)
            if self._event_loop >= 0:
                with contextlib.suppress(OSError):  # full of wake-ups, or just closed
                    os.write(self._event_loop, heard.replace(_FROM_HANDLER, b""))
            if (signal.SIGTERM in heard or _FROM_HANDLER in heard) and self._main_task is None:
                self._on_sigterm()

    def _set_wakeup_fd(self, fd: int, *, warn_on_full_buffer: bool = True) -> int:
        """Stand in for signal.set_wakeup_fd: an event loop gets its bytes from us."""
        if threading.current_thread() is not threading.main_thread():
            return self._set_real_wakeup_fd(fd, warn_on_full_buffer=warn_on_full_buffer)  # raises
        if fd >= 0:
            os.fstat(fd)
        before, self._event_loop = self._event_loop, fd
        return before

    def _leave_child(self) -> None:
        signal.set_wakeup_fd = self._set_real_wakeup_fd
        signal.set_wakeup_fd(-1)
        if signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, self._handlers[-1] if self._handlers else signal.SIG_DFL)
        self._unblock()

    def _block(self) -> None:
        self._mask.before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    def _unblock(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask.before)


def _sigaction(signum: int, new: bytes | None = None) -> bytes:
    """Return the action that the operating system has for this signal, and set ``new`` if given."""
    libc = ctypes.CDLL(None, use_errno=True)
    old = ctypes.create_string_buffer(_SIGACTION_BYTES)
    replacement = ctypes.create_string_buffer(new, _SIGACTION_BYTES) if new is not None else None
    if libc.sigaction(signum, replacement, old) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return old.raw


def need_main_thread() -> None:
    """Raise PaddleGpuError outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        raise PaddleGpuError(
            "A process is protected from its main thread only: Python sets signal handlers nowhere else",
            "Call guard.install() or %load_ext jupyter_paddle_gpu in the main thread.",
        )
