"""What this kernel's session asks of it, for somebody who looks at a sidebar: to save, to restore."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Any, Protocol

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.errors import KernelRefused, PaddleGpuError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.wire import Answer, Call
from jupyter_paddle_gpu.kernel.protection import Protection
from jupyter_paddle_gpu.kernel.telling import left_open

log = logging.getLogger(__name__)

BETWEEN_CELLS_S = 2.0  # how long the main thread may take to come to a restore


class Board(Protocol):
    """Who knows whether a cell runs."""

    def running(self) -> bool: ...


class Orders:
    """One per kernel; ``board`` is None where nobody knows of its cells. Each call gets one answer."""

    def __init__(self, kernel: Any, protection: Protection, board: Board | None) -> None:
        self._kernel = kernel
        self._protection = protection
        self._board = board

    def take(self, call: Call, answer: Callable[[Answer], None]) -> None:
        """Serve a call in a thread of its own; ``answer`` is called there."""
        serve = threading.Thread(target=self._serve, args=(call, answer), name="paddle-gpu-order", daemon=True)
        serve.start()

    def _serve(self, call: Call, answer: Callable[[Answer], None]) -> None:
        try:
            answer(Answer(call.id, self._do(call.method, call.params)))
        except PaddleGpuError as error:
            fault = "\n  ".join([error.fault, *getattr(error, "differences", ())])
            answer(Answer(call.id, None, fault, error.next_step))
        except Exception as error:  # a fault of ours, or of a user's own state_dict: told, not swallowed
            log.exception("The session asked for %s", call.method)
            answer(Answer(call.id, None, f"{type(error).__name__}: {error}", "The kernel's log says more."))

    def _do(self, method: str, params: Mapping[str, object]) -> object:
        if method == "save":
            return to_plain(self._protection.save(Cause.MANUAL))
        if method == "restore":
            name, partial = params.get("snapshot"), bool(params.get("partial"))
            return self._between_cells(lambda: self._restore(name if isinstance(name, str) else None, partial))
        raise KernelRefused(f"This kernel does not know how to {method}", "Restart it: it runs another version.")

    def _restore(self, name: str | None, partial: bool) -> object:
        snapshot = None if name is None else self._protection.store.find(name)
        used, report = self._protection.restore(snapshot, partial)
        notes = [*left_open(report).splitlines(), *(f"not exact: {text}" for text in used.inexact)]
        return {"snapshot": to_plain(used), "notes": notes}

    def _between_cells(self, work: Callable[[], object]) -> object:
        """Run ``work`` in the main thread while no cell runs: what a cell computes with is not changed under it."""
        turn: Future[object] = Future()

        def take_turn() -> None:
            if not turn.set_running_or_notify_cancel():
                return
            try:
                self._check_idle()
                turn.set_result(work())
            except Exception as error:  # noqa: BLE001  # it is who asked that gets it
                turn.set_exception(error)

        self._check_idle()
        self._kernel.io_loop.add_callback(take_turn)
        try:
            return turn.result(BETWEEN_CELLS_S)
        except NotInTime:
            if turn.cancel():
                self._refuse()
            return turn.result()  # it has begun, and takes its time

    def _check_idle(self) -> None:
        if self._board is not None and self._board.running():
            self._refuse()

    def _refuse(self) -> None:
        raise KernelRefused("A cell is running", "Wait for it or interrupt it, then restore.")
