"""Tells a kernel that comes back after an eviction from a fresh run of the same notebook.

A mark beside the snapshots names the session that was evicted and the snapshot it left. Only a kernel of that session
goes on by itself; every other one is told what there is, and asked.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.core.units import format_duration

_NAME = ".evicted.json"
_MOST_BYTES = 4096


@dataclass(frozen=True)
class Mark:
    """``session`` was evicted and left ``snapshot`` (its directory's name)."""

    session: str
    snapshot: str


def leave_mark(directory: Path, mark: Mark) -> None:
    """Write the mark, whole or not at all. Raises OSError."""
    temporary = directory / f"{_NAME}.{os.getpid()}"
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
        json.dump(to_plain(mark), file)
    temporary.replace(directory / _NAME)


def read_mark(directory: Path) -> Mark | None:
    """Return the mark; None where there is none that can be read."""
    try:
        return from_plain(Mark, json.loads(_read(directory / _NAME)))
    except (OSError, ValueError, WireError):
        return None


def _read(path: Path) -> bytes:
    """Read a plain file: a pipe in its place, on a volume that others write to, would block for ever."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        return file.read(_MOST_BYTES) or b""


def remove_mark(directory: Path) -> None:
    """The session has gone on from its snapshot, or was ended by its user. Repeatable."""
    (directory / _NAME).unlink(missing_ok=True)


def offer(snapshot: Snapshot, now_s: float | None = None) -> str:
    """Return the line that tells a fresh kernel of an old snapshot; ``now_s`` in seconds since the epoch."""
    age_s = max(0.0, (time.time() if now_s is None else now_s) - snapshot.created_s)
    what = f"snapshot of step {snapshot.step}" if snapshot.step is not None else "snapshot"
    return f"{what} found ({_age(age_s)} ago); %paddle_gpu restore uses it"


def _age(seconds: float) -> str:
    if seconds < 90:
        return format_duration(seconds)
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"
