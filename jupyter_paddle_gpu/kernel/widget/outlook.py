"""What a screen shows of this kernel at one moment: values for people, and no question that disturbs the training."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome, Served, Snapshot
from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.language import spoken, translated

if TYPE_CHECKING:
    from jupyter_paddle_gpu.kernel.runtime import Runtime

ANSWER_S = 2.0  # for the session's server to say where it stands


@dataclass(frozen=True)
class Last:
    """The newest snapshot. ``created_s``: Unix time."""

    step: int | None
    nbytes: int
    created_s: float
    cause: str


@dataclass(frozen=True)
class Standing:
    """What changes slowly. ``session`` is False in a kernel that is not ours; ``device_kind`` is empty where nothing
    is held; ``wanted`` is how many GPUs are waited for; ``save_s`` None: no save was measured yet; ``fault``: why
    something of it is not known."""

    session: bool = False
    state: str = ""
    detail: str = ""
    tier: str = ""
    grace_s: float | None = None
    device_kind: str = ""
    devices: int = 0
    wanted: int | None = None
    position: int | None = None
    why: str = ""
    saves: bool = False  # there is something to save
    nbytes: int = 0
    save_s: float | None = None
    snapshot: Last | None = None
    fault: str = ""


@dataclass(frozen=True)
class Leaving:
    """An eviction. ``remaining_s`` was left when this was told, of ``grace_s``; ``outcome`` None: the save is still to
    end; ``text`` is what the running cell is told."""

    cause: str
    by: str
    remaining_s: float
    grace_s: float
    outcome: SaveOutcome | None = None
    step: int | None = None
    text: str = ""


@dataclass(frozen=True)
class Outlook:
    """All of it, told at ``at_s`` (Unix time, of the kernel's machine as all others here). ``reading`` None: the agent
    has shown nothing yet."""

    at_s: float
    standing: Standing = field(default_factory=Standing)
    updates: int = 0
    reading: Reading | None = None
    leaving: Leaving | None = None


def standing(runtime: Runtime) -> Standing:
    """Return how this kernel stands; asks its session's server. Raises nothing of ours."""
    protection, faults = runtime.protection, list[str]()
    view: Mapping[str, Any] = {}
    if runtime.link is not None:
        try:
            answer = runtime.call("status", timeout_s=ANSWER_S)
            view = answer if isinstance(answer, dict) else {}
        except PaddleGpuError as error:
            faults.append(error.fault)
    request = view.get("request", {})
    devices, wanted = view.get("devices", ()), view.get("wanted") or {}
    try:
        newest = next(iter(protection.store.list()), None)
    except PaddleGpuError as error:
        newest = None
        faults.append(error.fault)
    estimate = protection.estimate()
    return Standing(
        session=runtime.link is not None,
        state=view.get("state", ""),
        detail=view.get("detail", ""),
        tier=request.get("tier", ""),
        grace_s=float(request.get("grace_s", runtime.grace_s)),
        device_kind=_kind(view),
        devices=len(devices),
        wanted=wanted.get("gpus"),
        position=view.get("position"),
        why=view.get("why", ""),
        saves=protection.has_anything(),
        nbytes=estimate.nbytes,
        save_s=estimate.seconds,
        snapshot=None if newest is None else last(newest),
        fault=translated("; ".join(faults)),
    )


def told(outlook: Outlook) -> dict[str, Any]:
    """Return what a browser is told, its sentences in the user's language."""
    plain = to_plain(outlook)
    return {**plain, "reading": spoken(plain["reading"])}


def last(snapshot: Snapshot) -> Last:
    """Return what is shown of a snapshot."""
    return Last(snapshot.step, snapshot.nbytes, snapshot.created_s, snapshot.cause.value)


def leaving(notice: EvictionNotice, end_s: float, served: Served | None, text: str) -> Leaving:
    """Return what is shown of an eviction that ends at ``end_s`` on the monotonic clock."""
    return Leaving(
        notice.cause.value,
        notice.by,
        max(0.0, end_s - time.monotonic()),
        notice.remaining_s,
        None if served is None else served.outcome,
        None if served is None else served.step,
        text,
    )


def _kind(view: Mapping[str, Any]) -> str:
    """A server names it; an agent that is alone lists its devices."""
    devices = view.get("devices", ())
    if devices and isinstance(devices[0], dict):
        return str(devices[0].get("kind", ""))
    return str(view.get("device_kind", "")) if devices else ""
