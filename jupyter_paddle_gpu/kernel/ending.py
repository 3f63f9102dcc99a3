"""How a kernel and how a plain process end after their save."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from jupyter_paddle_gpu.checkpoint.stacks import outwards, own_stack_has
from jupyter_paddle_gpu.core.errors import Evicted
from jupyter_paddle_gpu.core.notice import EXIT_EVICTED
from jupyter_paddle_gpu.kernel.reply import Refusal, Switchboard
from jupyter_paddle_gpu.kernel.signals import SigtermWatch
from jupyter_paddle_gpu.language import translated

log = logging.getLogger(__name__)

_BY_ITSELF_S = 0.3  # for a training to end by itself, with the user's `finally` and `with` blocks
_HANDLERS_S = 0.5  # for the main thread to call the user's SIGTERM handlers; after that this thread calls them
_LAST_WORDS_S = 0.5  # for what is still in the buffers of a script's logs and streams
_UNWIND_S = 5.0  # for a script to end by itself, with its exit hooks

Evict = Callable[["BaseException | None"], None]


class KernelEnding:
    """Ends a kernel: the running cell and all that wait behind it get their answer, then the process goes."""

    def __init__(self, evict: Evict, board: Switchboard | None, watch: SigtermWatch) -> None:
        self._evict = evict
        self._board = board
        self._watch = watch
        self._raised: Evicted | None = None

    def stop_training(self, text: str) -> None:
        self._raised = Evicted(text, _where_the_main_thread_is())
        self._evict(self._raised)

    def finish(self, text: str, timeout_s: float) -> None:
        error = self._raised or Evicted(text, _where_the_main_thread_is())
        if self._board is None:
            return
        if self._raised is not None and self._board.running():
            self._wait_for_training(self._raised, self._board, timeout_s / 2)
        _flush_output()
        where = map(translated, error.where)
        refusal = Refusal("Evicted", text, (*where, f"Evicted: {text}"), shown=error.shown)
        told = self._board.refuse_all(refusal, timeout_s)
        if not told:
            log.warning("Clients could not be told within %.1f s", timeout_s)

    def _wait_for_training(self, raised: Evicted, board: Switchboard, timeout_s: float) -> None:
        """Let the training end its cell by itself; once it has begun to, it gets the time: a cell has one answer."""
        if not board.wait_answered(min(_BY_ITSELF_S, timeout_s)):
            self._evict(None)
            if raised.__traceback__ is not None:
                board.wait_answered(timeout_s)

    def leave(self, timeout_s: float) -> None:
        if self._watch.has_handlers():
            self._call_handlers(min(_HANDLERS_S, timeout_s))
        _end()

    def end_exit(self, served: Callable[[], object]) -> None:
        served()
        _end()

    def _call_handlers(self, timeout_s: float) -> None:
        """Call the user's handlers where handlers run, in the main thread; here if that does not come to it."""
        called = threading.Event()

        def call() -> None:
            self._watch.call_handlers()
            called.set()

        self._watch.run_in_main_thread(call)
        if not called.wait(timeout_s):
            self._watch.call_handlers()


class ProcessEnding:
    """Ends a script or a terminal session: its own exit hooks run, within a bound. ``speaks``: whether it says why."""

    def __init__(self, evict: Evict, watch: SigtermWatch, speaks: Callable[[], bool] = lambda: True) -> None:
        self._evict = evict
        self._speaks = speaks
        self._watch = watch
        self._end = SystemExit(EXIT_EVICTED)  # once it has a traceback, the main thread is on its way out with our code
        self._exiting = False  # it is on its way out by itself

    def stop_training(self, text: str) -> None:
        self._evict(self._end)

    def finish(self, text: str, timeout_s: float) -> None:
        if not self._speaks():
            return
        with contextlib.suppress(OSError, ValueError):  # nobody reads any more
            print(f"paddle-gpu: {text}", file=sys.stderr, flush=True)

    def leave(self, timeout_s: float) -> None:
        def end() -> None:
            self._watch.call_handlers()
            if _program_runs() and not _unwinds(self._end):
                raise self._end

        if not self._exiting:
            self._watch.run_in_main_thread(end)
            time.sleep(min(_UNWIND_S, timeout_s))  # the process is gone before that if it can
        self._watch.call_handlers()
        _end_in_time()

    def end_exit(self, served: Callable[[], object]) -> None:
        self._exiting = True
        served()
        if self._end.__traceback__ is None:
            self._watch.call_handlers()
            _end_in_time()


def _program_runs() -> bool:
    """Whether the calling main thread is inside of the program still, not behind its end among the exit hooks."""
    return any(frame.f_globals.get("__name__") == "__main__" for frame in outwards(sys._getframe(1)))


def _unwinds(end: BaseException) -> bool:
    """Whether the calling main thread is on its way out with ``end`` already: what cleans up there is not disturbed."""
    return end.__traceback__ is not None and own_stack_has(end.__traceback__.tb_frame)


def _end() -> NoReturn:
    logging.shutdown()
    _flush_output()
    os._exit(EXIT_EVICTED)


def _end_in_time() -> NoReturn:
    """End as ``_end`` does, but don't wait for ever for a lock that the main thread never gives back."""
    last = threading.Thread(target=_end, name="paddle-gpu-end", daemon=True)
    try:
        last.start()
    except RuntimeError:  # an exiting interpreter starts no threads; its main thread, which we are, holds no lock
        _end()
    last.join(_LAST_WORDS_S)
    os._exit(EXIT_EVICTED)


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or replaced by the user
            stream.flush()


def _where_the_main_thread_is() -> tuple[str, ...]:
    """Return the lines of the user's cell that the main thread is in, outermost first; () outside a cell."""
    frame: Any = sys._current_frames().get(threading.main_thread().ident or 0)
    if frame is None:
        return ()
    cells = f"ipykernel_{os.getpid()}"
    lines = [entry for entry in traceback.extract_stack(frame) if cells in entry.filename]
    return tuple(f"the cell was at line {entry.lineno}: {(entry.line or '').strip()}" for entry in lines)
