"""What Linux offers to look after processes that are not only direct children."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

from jupyter_paddle_gpu.telemetry.processes import everyone

_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Make this process the parent of every descendant whose own parent ends: nothing escapes its sight."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def children() -> list[int]:
    """Return the living children of this process, adopted ones too."""
    return [process.pid for process in everyone() if process.parent == os.getpid()]


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


def kill_process(pid: int) -> None:
    """SIGKILL one process; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_session(session: int) -> None:
    """SIGKILL the process group and everything else that still belongs to its session."""
    kill_group(session, signal.SIGKILL)
    for process in everyone():
        if process.session == session:
            kill_process(process.pid)
