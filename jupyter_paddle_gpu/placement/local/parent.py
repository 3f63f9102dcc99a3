"""Children that do not outlive their parent."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def tied_to_parent() -> Callable[[], None]:
    """Return what a new child runs before its program: it dies with this process and hears SIGINT.

    Only calls that were looked up before the fork: another thread may have held a lock at that moment.
    """
    parent, prctl, sigkill = os.getpid(), _libc.prctl, int(signal.SIGKILL)

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job would pass "ignore" on
        prctl(_PR_SET_PDEATHSIG, sigkill, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the line above
            os._exit(1)

    return prepare
