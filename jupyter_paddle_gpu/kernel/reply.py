"""Answers a kernel's unanswered requests from another thread, also while its main thread sits in C code.

ipykernel 7 lets every shell request in, and every reply out, through one thread of its own, the shell channel thread.
The switchboard stands there: it knows what is unanswered, answers it when asked, and lets no second answer out.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jupyter_paddle_gpu.kernel.frames import HEADER, PARENT, Request, identities_of, part_of
from jupyter_paddle_gpu.kernel.outgoing import Outgoing
from jupyter_paddle_gpu.kernel.queued import queued_messages

log = logging.getLogger(__name__)

_LOOK_S = 0.05

RunningCell = tuple[dict[str, Any], list[bytes], int]  # header, ROUTER identities and number of the cell that runs now
OnCell = Callable[["RunningCell | None"], None]


@dataclass(frozen=True)
class Refusal:
    """What clients are told: ``name`` and ``text`` of the error, ``traceback`` its lines for the cell that runs.

    ``shown``: the kernel has published that error already; only its reply is missing.
    """

    name: str
    text: str
    traceback: tuple[str, ...] = ()
    shown: bool = False


class Switchboard:
    """All requests and replies of one kernel's shell channel pass here; methods may be called from any thread.

    ``aside`` may be set: it is called in the shell channel thread with what asks for no reply, and returns whether it
    has dealt with that itself.
    """

    def __init__(self, kernel: Any, on_cell: OnCell) -> None:
        self._kernel = kernel
        self._on_cell = on_cell
        self.aside: Callable[[Request], bool] = lambda request: False
        self._told: str | None = None  # the running cell that was told last
        self._thread = kernel.shell_channel_thread
        self._unanswered: dict[str, Request] = {}  # by message id, oldest first
        self._refused: set[str] = set()
        self._refusal: Refusal | None = None
        self._answered = threading.Condition()
        self._last: Request | None = None  # what the kernel itself has answered last; its client waits for "idle" too
        self._outgoing = Outgoing(kernel)

    @classmethod
    def attach(cls, kernel: Any, on_cell: OnCell) -> Switchboard | None:
        """Put a switchboard into this kernel; to be called in its main thread.

        ``on_cell`` is called, from whichever thread, when another cell begins to run and when none does any more. None
        where the kernel has no shell channel thread: it is not ipykernel 7, only it can answer.
        """
        if getattr(kernel, "shell_channel_thread", None) is None or kernel.shell_stream is None:
            return None
        board = cls(kernel, on_cell)
        manager = board._thread.manager  # made on first access, which must be the main thread's
        started = getattr(kernel, "io_loop", None) is not None  # else kernel.start() registers what it finds
        attached = threading.Event()

        def attach() -> None:
            board._stand_between(manager, started)
            for frames in queued_messages(kernel):
                board._take(frames)
            attached.set()

        board._watch_cells()
        board._thread.io_loop.add_callback(attach)
        return board if attached.wait(5.0) else None

    def running(self) -> bool:
        """Whether a cell is running or queued."""
        return any(request.header["msg_type"] == "execute_request" for request in list(self._unanswered.values()))

    def wait_answered(self, timeout_s: float) -> bool:
        """Wait until the kernel itself has answered everything; False after ``timeout_s``."""
        with self._answered:
            return self._answered.wait_for(lambda: not self._unanswered, timeout_s)

    def refuse_all(self, refusal: Refusal, timeout_s: float) -> bool:
        """Answer all that is unanswered with ``refusal``, and everything that comes from now on.

        The running cell gets the error with its traceback, queued ones an error without output. Returns True when the
        answers have left this process, False after ``timeout_s``, or at once where the kernel has closed its channels
        with something unanswered. A second call changes nothing.
        """
        end = time.monotonic() + timeout_s
        done = threading.Event()

        def refuse() -> None:
            if self._refusal is None:
                self._refusal = refusal
                self._publish_last_idle()
                running: set[str | None] = set()
                for request in list(self._unanswered.values()):
                    self._refuse(request, refusal, running)
            self._kernel.iopub_thread.schedule(done.set)  # after everything that was published before

        self._thread.io_loop.add_callback(refuse)
        while not done.wait(_LOOK_S):
            if not self._thread.is_alive() and not done.wait(_LOOK_S):
                return not self._unanswered  # the kernel ends by itself: nobody listens for our callback any more
            if time.monotonic() > end:
                return False
        if not self._outgoing.wait_left(end - time.monotonic()):
            return False
        self._on_cell(None)
        return True

    def _watch_cells(self) -> None:
        """Know the cell that runs now and those already queued, which came before the switchboard stood here."""
        kernel = self._kernel
        execute = kernel.shell_handlers["execute_request"]

        async def execute_request(stream: Any, identities: Any, message: dict[str, Any]) -> None:
            if message["header"]["msg_id"] in self._refused:
                return
            self._know(identities, message)
            await execute(stream, identities, message)

        kernel.shell_handlers["execute_request"] = execute_request
        if (current := kernel.get_parent("shell")) and current["header"].get("msg_type") == "execute_request":
            self._know(kernel._parent_ident["shell"], current)

    def _know(self, identities: Any, message: dict[str, Any]) -> None:
        header = message["header"]
        self._unanswered.setdefault(header["msg_id"], Request(header, identities=identities, message=message))
        self._tell_running()

    def _tell_running(self) -> None:
        """Tell which cell runs: the oldest one, for its client's sake if this process dies without a word."""
        cells = (item for item in list(self._unanswered.items()) if item[1].header["msg_type"] == "execute_request")
        msg_id, request = next(cells, (None, None))
        if msg_id == self._told:
            return
        self._told = msg_id
        if request is None:
            self._on_cell(None)
            return
        identities = request.identities or identities_of(request.frames or [])
        header = json.loads(json.dumps(request.header, default=lambda date: date.isoformat()))
        self._on_cell((header, identities, self._kernel.execution_count))

    # The rest runs in the shell channel thread.

    def _stand_between(self, manager: Any, started: bool) -> None:
        kernel = self._kernel
        forward = kernel.shell_channel_thread_main

        async def take(frames: list[Any]) -> None:
            if self._take(frames):
                await forward(frames)

        def let_out(frames: list[Any]) -> None:
            if self._let_out(frames):
                if self._refusal is None:
                    self._outgoing.forget()
                self._outgoing.send(frames)

        kernel.shell_channel_thread_main = take
        if started:
            kernel.shell_stream.on_recv(take, copy=False)
        manager._send_on_shell_channel = let_out  # for subshells made later
        manager._main_to_shell_channel.on_recv(self._thread.io_loop, let_out)

    def _take(self, frames: list[Any]) -> bool:
        header = part_of(frames, HEADER)
        if not str(header.get("msg_type", "")).endswith("_request"):
            return self._refusal is None and not self.aside(Request(header, frames))
        request = Request(header, frames)
        if self._refusal is not None:
            self._refuse(request, self._refusal, {header.get("subshell_id")})
            return False
        self._unanswered.setdefault(header["msg_id"], request)
        self._tell_running()
        return True

    def _let_out(self, frames: list[Any]) -> bool:
        parent = part_of(frames, PARENT).get("msg_id", "")
        if parent in self._refused:
            return False
        if (request := self._unanswered.pop(parent, None)) is not None:
            self._last = request
            self._tell_running()
            if not self._unanswered:
                with self._answered:
                    self._answered.notify_all()
        return True

    def _publish_last_idle(self) -> None:
        """Say for the kernel's main thread, which may never come to it, that the cell it has just answered is over."""
        if self._last is not None:
            _, message = self._last.opened(self._kernel.session)
            self._outgoing.publish("status", {"execution_state": "idle"}, message)

    def _refuse(self, request: Request, refusal: Refusal, running: set[str | None]) -> None:
        header = request.header
        self._refused.add(header["msg_id"])
        self._unanswered.pop(header["msg_id"], None)
        try:
            identities, message = request.opened(self._kernel.session)
        except (ValueError, TypeError) as error:
            log.warning("A request that is not well-formed stays unanswered: %s", error)
            return
        is_cell, subshell = header["msg_type"] == "execute_request", header.get("subshell_id")
        first = is_cell and subshell not in running
        if first:
            running.add(subshell)
        fault = {
            "ename": refusal.name,
            "evalue": refusal.text if first else f"not run: {refusal.text}",
            "traceback": list(refusal.traceback) if first else [],
        }
        if first and not refusal.shown and not message["content"].get("silent"):
            self._outgoing.publish("error", fault, message)
        if header["msg_type"] == "kernel_info_request":  # papermill asks once more at its end, and needs the answer
            self._outgoing.reply({"status": "ok", **self._kernel.kernel_info}, identities, message)
        else:
            self._outgoing.reply({"status": "error", **fault}, identities, message)
        self._outgoing.publish("status", {"execution_state": "idle"}, message)
