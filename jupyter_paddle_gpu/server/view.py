"""What is shown of a session: by REST, by events, to the kernel itself."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.core.snapshot import Snapshot


@dataclass(frozen=True)
class NoticeView:
    """The place is being given up: why, for whom (empty: unknown), and when the time is over (Unix time)."""

    cause: Cause
    by: str
    ends_s: float


@dataclass(frozen=True)
class RestoredView:
    """A snapshot was restored at ``at_s`` (Unix time), in ``seconds``. ``lost_steps``: how many steps more the training
    had made before it was interrupted, as far as it was known then (None: not known, or it was not interrupted)."""

    name: str
    step: int | None
    at_s: float
    seconds: float
    lost_steps: int | None


@dataclass(frozen=True)
class SessionView:
    """A session at one moment, as JSON values once ``to_plain`` has seen it.

    ``position`` and ``why`` stand while it waits, ``notice`` while it gives its place up; ``wanted`` is the request
    that a session without a GPU waits for while its kernel goes on; ``detail`` is a sentence about what happened last;
    ``step`` and ``snapshot`` are those of the last eviction's save, ``saved`` is the last snapshot of any cause and
    ``restored`` the last restore, since this server looks after the session; ``exit_code`` and ``log_tail`` are those
    of a kernel that ended by itself.
    """

    id: str
    label: str
    kernel_name: str
    state: State
    request: GpuRequest
    devices: tuple[str, ...] = ()
    device_kind: str = ""
    position: int | None = None
    why: str = ""
    wanted: GpuRequest | None = None
    detail: str = ""
    step: int | None = None
    snapshot: str | None = None
    exit_code: int | None = None
    log_tail: str = ""
    notice: NoticeView | None = None
    saved: Snapshot | None = None
    restored: RestoredView | None = None
