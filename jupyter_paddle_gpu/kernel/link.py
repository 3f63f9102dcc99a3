"""The kernel's line to its agent: a thread that hears notices even while the main thread sits in C code."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jupyter_paddle_gpu.core.errors import AgentUnreachable, PaddleGpuError, WireError
from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.snapshot import Served
from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.core.wire import (
    MAX_LINE_BYTES,
    Answer,
    Call,
    CellDone,
    CellRunning,
    Hello,
    Message,
    Notice,
    Ready,
    Role,
    Seen,
    Watch,
    decode,
    encode,
)

log = logging.getLogger(__name__)

OnMessage = Callable[["Call | Watch"], None]


class Link:
    """One connection to the agent, for the life of the kernel process.

    ``on_notice`` and ``on_seen`` (what ``watch`` asks for) are called in the link's own thread and must return at once;
    so must ``on_message``, which is for what the session asks beside. Nothing is sent from a forked child: the agent
    knows the kernel by its process, and a data-loading worker is not it.
    """

    def __init__(self, path: Path, on_notice: Callable[[EvictionNotice], None], on_message: OnMessage) -> None:
        self._path = path
        self._on_notice = on_notice
        self._on_message = on_message
        self.on_seen: Callable[[Reading], None] = lambda reading: None
        self._pid = os.getpid()
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Pending] = {}
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def connect(self) -> None:
        """Connect and say Hello. Raises AgentUnreachable."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(self._path))
        except OSError as error:
            connection.close()
            raise AgentUnreachable(
                f"The agent at {self._path} does not answer: {error.strerror}",
                "This kernel will not hear of an eviction; restart it from the notebook.",
            ) from None
        self._socket = connection
        self._send(Hello(Role.KERNEL, self._pid))
        threading.Thread(target=self._read, args=(connection,), name="paddle-gpu-link", daemon=True).start()

    @property
    def connected(self) -> bool:
        return self._socket is not None and os.getpid() == self._pid

    def ready(self) -> None:
        """Tell the agent that notices are served from now on."""
        self._send(Ready())

    def served(self, served: Served) -> None:
        """Say how the notice was answered."""
        self.tell(served)

    def watch(self, period_s: float) -> None:
        """Have the agent look at devices and host every ``period_s``; 0: no more."""
        self.tell(Watch(period_s))

    def tell(self, message: Message) -> None:
        """Give the agent a hint; one that is gone needs none."""
        try:
            self._send(message)
        except AgentUnreachable as error:
            log.debug("The agent was not told: %s", error)

    def cell(self, running: tuple[Mapping[str, object], Sequence[bytes], int] | None) -> None:
        """Say which cell runs (see reply.OnCell)."""
        if running is None:
            self.tell(CellDone())
        else:
            header, identities, count = running
            self.tell(CellRunning(header, tuple(identity.hex() for identity in identities), count))

    def call(self, method: str, params: Mapping[str, object] | None = None, timeout_s: float = 30.0) -> object:
        """Ask the server through the agent and return its result.

        Raises AgentUnreachable when nobody answers within ``timeout_s``, PaddleGpuError with the other side's fault and
        next step when it refuses.
        """
        pending = _Pending()
        call_id = next(self._ids)
        self._waiting[call_id] = pending
        try:
            self._send(Call(call_id, method, dict(params or {})))
            answered = pending.done.wait(timeout_s)
        finally:
            self._waiting.pop(call_id, None)
        if not answered or pending.answer is None:
            reason = f"no answer to {method!r} within {timeout_s:g} s" if not answered else "the agent has gone"
            raise AgentUnreachable(f"The session's server cannot be asked: {reason}", "Try again in a moment.")
        if pending.answer.error is not None:
            raise PaddleGpuError(pending.answer.error, pending.answer.next_step)
        return pending.answer.result

    def close(self) -> None:
        """End the connection; waiting calls fail."""
        connection, self._socket = self._socket, None
        if connection is not None:
            with contextlib.suppress(OSError):  # the other end was first
                connection.shutdown(socket.SHUT_RDWR)  # wakes the reader, which closes it

    def _send(self, message: Message) -> None:
        connection = self._socket
        if connection is None or os.getpid() != self._pid:
            raise AgentUnreachable("This process has no agent", "Start the notebook with the kernel “Paddle GPU”.")
        try:
            with self._lock:
                connection.sendall(encode(message))
        except OSError as error:
            raise AgentUnreachable(f"The agent has gone: {error.strerror}", "Restart the kernel.") from None

    def _read(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as lines:
                while line := lines.readline(MAX_LINE_BYTES + 1):
                    self._take(line)
        except (OSError, ValueError) as error:  # closed by the other end, or by close() while it was read
            log.debug("The agent's line ended: %s", error)
        self._socket = None
        for pending in list(self._waiting.values()):
            pending.done.set()

    def _take(self, line: bytes) -> None:
        try:
            message = decode(line)
        except WireError as error:
            log.warning("A message of the agent was not understood: %s", error)
            return
        if isinstance(message, Notice):
            self._on_notice(message.notice)
        elif isinstance(message, (Call, Watch)):
            self._on_message(message)
        elif isinstance(message, Seen):
            self.on_seen(message.reading)
        elif isinstance(message, Answer) and (pending := self._waiting.get(message.id)) is not None:
            pending.answer = message
            pending.done.set()


class _Pending:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.answer: Answer | None = None
