"""What agent, kernel and server say to each other: one JSON object a line, tagged with its kind.

    server ──► agent    Start, Interrupt, Change, Stop, Evict, Watch
    agent  ──► server   KernelStarted, KernelReady, KernelExited, Noticed, Served, Seen
    agent  ──► kernel   Notice, Watch, Seen
    kernel ──► agent    Ready, Served, CellRunning, CellDone, Watch
    kernel ──► agent ──► server            Saved, Restored, KernelSeen
    kernel ──► agent ──► server and back   Call, Answer
    server ──► agent ──► kernel and back   Call, Answer

Every connection begins with Hello. A server or observer is then told where things stand, with the same messages that
it would have got before (KernelStarted, KernelReady, KernelExited, Noticed, Served). A message is a hint that may be
lost: what must survive is in the snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Union, get_args

from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import UnknownMessage, WireError
from jupyter_paddle_gpu.core.notice import EXIT_EVICTED as EXIT_EVICTED
from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.snapshot import Served as Served
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.core.telemetry import KernelSample, Reading

MAX_LINE_BYTES = 1 << 20


class Role(str, Enum):
    """Who has connected to an agent."""

    KERNEL = "kernel"
    SERVER = "server"
    OBSERVER = "observer"  # looks only: `ps`, a test


@dataclass(frozen=True)
class Hello:
    """First line of every connection, from the side that connects."""

    role: Role
    pid: int


@dataclass(frozen=True)
class Start:
    """Start the kernel, or start it again in place: ends the process there is, keeps the devices.

    ``env`` is added to the agent's own environment; ``devices`` of the session are added by the agent.
    ``connection_file`` is Jupyter's: its ports tell when the kernel is ready (None: ready when the kernel says Ready);
    ``connection`` is what the agent writes into it first (None: the server has written it).
    ``again``: False starts it only where no process was started yet.
    """

    command: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    connection_file: Path | None = None
    again: bool = True
    connection: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Interrupt:
    """Send the kernel's process group this signal (SIGINT where a user presses stop)."""

    signum: int = 2


@dataclass(frozen=True)
class Change:
    """The session's request was changed in place (tier, grace, memory; never the number of GPUs): the agent uses it
    from now on, and writes it into its claim where it has one."""

    request: GpuRequest


@dataclass(frozen=True)
class Evict:
    """Serve this notice as if SIGTERM had come: tell the kernel, wait for its answer, end."""

    notice: EvictionNotice


@dataclass(frozen=True)
class Stop:
    """End the kernel and the agent. ``save_s``: seconds that the kernel gets to save first (0: end at once)."""

    save_s: float = 0.0


@dataclass(frozen=True)
class Watch:
    """Look every ``period_s`` and say what is seen to me each time; 0: I look no more.

    The agent looks at the session's devices (Seen), and passes a server's wish on to the kernel, which looks at itself
    (KernelSeen).
    """

    period_s: float


@dataclass(frozen=True)
class Seen:
    """What the agent has seen of its own devices and of its host."""

    reading: Reading


@dataclass(frozen=True)
class KernelSeen:
    """What the kernel has seen of itself."""

    sample: KernelSample


@dataclass(frozen=True)
class Saved:
    """The kernel has made this snapshot, for whatever cause."""

    snapshot: Snapshot


@dataclass(frozen=True)
class Restored:
    """The kernel has restored this snapshot, in ``seconds``."""

    snapshot: Snapshot
    seconds: float


@dataclass(frozen=True)
class KernelStarted:
    """The kernel process exists."""

    pid: int


@dataclass(frozen=True)
class KernelReady:
    """The kernel's ports answer."""


@dataclass(frozen=True)
class KernelExited:
    """The kernel process ended and nobody asked for it; ``log_tail`` are its last lines. The agent stays."""

    exit_code: int
    log_tail: str = ""


@dataclass(frozen=True)
class Noticed:
    """The agent has told the kernel this notice."""

    notice: EvictionNotice


@dataclass(frozen=True)
class Notice:
    """Give up the GPU: save at a safe moment, then say Served."""

    notice: EvictionNotice


@dataclass(frozen=True)
class Ready:
    """The extension is loaded and serves notices."""


@dataclass(frozen=True)
class CellRunning:
    """An execute_request is being run: what its client needs to get an answer even when the kernel can give none.

    ``parent`` is the request's header as JSON values (dates as ISO 8601 text), ``idents`` the hex of its ROUTER
    identities, ``execution_count`` the number of the cell.
    """

    parent: Mapping[str, object]
    idents: tuple[str, ...] = ()
    execution_count: int = 0


@dataclass(frozen=True)
class CellDone:
    """The client of the last CellRunning has its answer, or the kernel is sure to give it."""


@dataclass(frozen=True)
class Call:
    """A question; ``id`` pairs it with its Answer.

    The kernel asks the server (``method`` is status, request, release or explain), or the server the kernel (save, or
    restore with ``snapshot``, a name or None, and ``partial``).
    """

    id: int
    method: str
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The reply to a Call: ``result``, or ``error`` and its ``next_step``."""

    id: int
    result: object = None
    error: str | None = None
    next_step: str = ""


Message = Union[
    Hello, Start, Interrupt, Change, Evict, Stop, KernelStarted, KernelReady, KernelExited, Noticed, Notice, Ready,
    Served, CellRunning, CellDone, Call, Answer, Watch, Seen, KernelSeen, Saved, Restored,
]  # fmt: skip
_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in get_args(Message)}


def encode(message: Message) -> bytes:
    """Return the line (with its newline) for a message."""
    return json.dumps({"kind": type(message).__name__, **to_plain(message)}).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Return the message of a line. Raises WireError that names what is wrong, UnknownMessage for another kind."""
    if len(line) > MAX_LINE_BYTES:
        raise WireError(f"A message of {len(line)} bytes is longer than {MAX_LINE_BYTES}")
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError(f"A message is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(name := data.pop("kind", None), str):
        raise WireError(f"A message without its kind: {line[:80]!r}")
    kind = _KINDS.get(name)
    if kind is None:
        raise UnknownMessage(f"A message of unknown kind: {line[:80]!r}")
    return from_plain(kind, data)
