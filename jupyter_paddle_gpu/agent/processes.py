"""What Linux offers to look after processes that are not only direct children."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Make this process the parent of every descendant whose own parent ends: nothing escapes its sight."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


@dataclass(frozen=True)
class ProcessRow:
    """One line of the process table: ``session`` is the pid of the session's leader."""

    pid: int
    parent: int
    session: int
    zombie: bool


def process_table() -> Iterator[ProcessRow]:
    """Yield the processes that there are, as far as we may see them."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        state, parent, _group, session = text.rpartition(")")[2].split()[:4]
        yield ProcessRow(int(entry.name), int(parent), int(session), state == "Z")


def children() -> list[int]:
    """Return the living children of this process, adopted ones too."""
    return [row.pid for row in process_table() if row.parent == os.getpid() and not row.zombie]


def kill_group(group: int, signum: int) -> None:
    """Signal a process group; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the second: only a setuid process is left
        os.killpg(group, signum)


def group_alive(group: int) -> bool:
    """Whether a process group has a member (one that has ended counts until it is reaped)."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # a setuid process
        return True
    return True


def process_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def kill_process(pid: int) -> None:
    """SIGKILL one process; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_session(session: int) -> None:
    """SIGKILL the process group and everything else that still belongs to its session."""
    kill_group(session, signal.SIGKILL)
    for row in process_table():
        if row.session == session:
            kill_process(row.pid)
