"""The session on disk: what the server that comes after a crash needs to look after it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_paddle_gpu.core.agentspec import SessionFiles
from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.private import write_private

REFRESH_S = 10.0  # how often the sessions' locks are touched: an adopter asks when their owner was last alive


@dataclass(frozen=True)
class Launch:
    """What starts the kernel. ``connection`` is the content of the ``connection_file`` as JSON values: the same over
    the session's whole life."""

    command: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    connection_file: Path
    connection: Mapping[str, object]
    kernel_name: str
    label: str


@dataclass(frozen=True)
class Notebook:
    """Jupyter's own session, by which an open notebook finds its kernel."""

    id: str
    path: str
    name: str
    type: str


@dataclass(frozen=True)
class Record:
    """A session as its server last knew it. The credentials of the server are not in it."""

    session: str
    request: GpuRequest
    launch: Launch
    guarded: bool = False
    adoptable: bool = False
    waiting: bool = False  # it has no agent because it waits in the queue
    lease_s: float = 300.0
    notebooks: tuple[Notebook, ...] = field(default=())

    def write(self, files: SessionFiles) -> None:
        """Replace the record on disk."""
        write_private(files.record, json.dumps(to_plain(self)))


def read_records(sessions: Path) -> Iterator[Record]:
    """Yield every readable record under the directory ``sessions``; one of another version or place is passed over."""
    for path in sorted(sessions.glob("*/session.json")):
        with suppress(OSError, ValueError, RecursionError, WireError):
            record = from_plain(Record, json.loads(path.read_text()))
            if record.session == path.parent.name:
                yield record


class Ownership:
    """The lock on a session: held as long as this process lives, and by nobody else."""

    def __init__(self, files: SessionFiles) -> None:
        self._path = files.owner_lock
        self._fd: int | None = None

    def take(self) -> bool:
        """Lock the session. False: another living process has it. Raises OSError."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def age_s(self) -> float:
        """Return how long ago the owner last said that it lives."""
        try:
            return max(0.0, time.time() - self._path.stat().st_mtime)
        except FileNotFoundError:
            return float("inf")

    def refresh(self) -> None:
        """Say that the owner lives."""
        with suppress(OSError):
            os.utime(self._path)

    def release(self) -> None:
        """Unlock. May be repeated."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
