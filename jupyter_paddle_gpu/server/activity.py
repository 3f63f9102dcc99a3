"""What Jupyter believes of a kernel: busy while it waits for a GPU, and idle again once it is there.

Busy, for then a notebook that is opened is connected at once, and its cells wait with the kernel: of any other kernel
Jupyter wants an answer first, and closes the connection when none comes within a minute.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone
from typing import Any

from jupyter_client._version import protocol_version
from tornado.ioloop import IOLoop

from jupyter_paddle_gpu.core.quiet import QUIET_TOPIC
from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.server.view import SessionView

# Whoever listens connects again within 0.2 s (ZMQ_RECONNECT_IVL, 0.1 s, and up to as much by chance), a slow machine
# later: the first greeting may be too early for some.
GREETINGS_AFTER_S = (0.0, 0.3, 1.0, 4.0)


class _Busy(str):
    """Jupyter's "busy" as we say it for a kernel that is not there; what Jupyter hears of a kernel is a plain text."""

    __slots__ = ()


_BUSY = _Busy("busy")


class KernelActivity:
    """Keeps ``execution_state`` of Jupyter's kernel managers true, on the server's ``loop``."""

    def __init__(self, kernel_manager: Any, loop: IOLoop) -> None:
        self._kernels = kernel_manager
        self._loop = loop
        self._away: set[str] = set()
        self._early: dict[str, SessionView] = {}  # of kernels that Jupyter is about to have
        self._watch = kernel_manager.start_watching_activity
        kernel_manager.start_watching_activity = self._started

    def observe(self, view: SessionView) -> None:
        """Take a session's state from the sessions' thread."""
        self._loop.add_callback(self._follow, view)

    def adopted(self, kernel_id: str) -> None:
        """Take a kernel of an earlier server, which may run a cell, for busy until it answers: the culler spares it."""
        kernel = self._kernels.get_kernel(kernel_id)
        kernel.execution_state = "busy"
        channel = kernel.connect_shell()

        def answered(_reply: object) -> None:
            channel.close()
            kernel.execution_state = "idle"

        channel.on_recv(answered)
        kernel.session.send(channel, "kernel_info_request")

    def _started(self, kernel_id: str) -> None:
        """Jupyter has the kernel now, and calls it "starting": say what it waits for before a notebook asks."""
        self._watch(kernel_id)
        _pass_over_screens(self._kernels.get_kernel(kernel_id))
        if (view := self._early.pop(kernel_id, None)) is not None:
            self._follow(view)

    def _follow(self, view: SessionView) -> None:
        if view.id not in self._kernels:
            self._away.discard(view.id)
            self._early.pop(view.id, None)
            if view.state is State.REQUESTED:
                self._early[view.id] = view
            return
        kernel = self._kernels.get_kernel(view.id)
        if view.state in (State.REQUESTED, State.WAITING):
            kernel.last_activity = datetime.now(timezone.utc)  # told every second: who waits is not idle for the culler
            self._away.add(view.id)
            kernel.execution_state, kernel.reason = _BUSY, view.why
            _let_notebooks_in(kernel)
        elif view.state is State.RUNNING and view.id in self._away:
            self._away.discard(view.id)
            kernel.reason = ""
            if isinstance(kernel.execution_state, _Busy):  # else a cell that has waited runs already
                kernel.execution_state = "starting"  # what Jupyter makes idle with the kernel's first word
            for delay_s in GREETINGS_AFTER_S:
                self._loop.call_later(delay_s, self._greet, view.id)

    def _greet(self, kernel_id: str) -> None:
        """Ask the kernel for its info: everybody who listens to it sees that it is idle."""
        if kernel_id not in self._kernels or kernel_id in self._away:
            return
        kernel = self._kernels.get_kernel(kernel_id)
        channel = kernel.connect_shell()
        channel.on_recv(lambda _reply: channel.close())
        kernel.session.send(channel, "kernel_info_request")


def _pass_over_screens(kernel: Any) -> None:
    """What a kernel tells its screens by itself is no activity: an idle kernel that is looked at may be culled."""
    stream = kernel._activity_stream
    record = stream._recv_callback

    def hear(frames: list[bytes]) -> None:
        if frames[0] != QUIET_TOPIC:
            record(frames)

    stream.on_recv(hear)


def _let_notebooks_in(kernel: Any) -> None:
    """Answer for a kernel that is not there what Jupyter asks before it connects a notebook: which protocol it speaks.

    It asks once for each kernel, and keeps the answer in this attribute.
    """
    if not hasattr(kernel, "_kernel_info_future"):
        kernel._kernel_info_future = asyncio.get_running_loop().create_future()
        kernel._kernel_info_future.set_result({"protocol_version": protocol_version})
