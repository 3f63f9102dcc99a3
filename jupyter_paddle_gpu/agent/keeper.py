"""The keeper: a small process that outlives a killed agent just long enough to end the kernel.

PR_SET_PDEATHSIG reaches the kernel's first process only; behind `sh -c …` the real kernel would go on with a device
that the next one is given. The keeper shares the lease's lock: it is free when the kernel is dead, not before.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from jupyter_paddle_gpu.agent.processes import kill_session


class Keeper:
    """Owned by the agent; made before there are threads, since it is a fork without a new program."""

    def __init__(self, claim_fd: int | None = None) -> None:
        """Start it. ``claim_fd``: the lease's descriptor, which it keeps open as long as it lives."""
        receiver, self._sender = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _keep(receiver, {receiver} if claim_fd is None else {receiver, claim_fd})
            finally:
                os._exit(0)
        os.close(receiver)

    def guard(self, session: int) -> None:
        """From now on this kernel (the pid that leads its session; 0: none) ends when the agent does."""
        try:
            os.write(self._sender, b"%d\n" % session)
        except BrokenPipeError:  # somebody killed the keeper: PR_SET_PDEATHSIG is left
            return

    def close(self) -> None:
        """End it. To be called once, with no kernel left."""
        os.close(self._sender)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:  # reaped with the others
            return


def _keep(receiver: int, keep_open: set[int]) -> None:
    os.setsid()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    for fd in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if fd not in keep_open:
            try:
                os.close(fd)
            except OSError:  # the listing's own
                continue
    session, rest = 0, b""
    while chunk := os.read(receiver, 4096):
        *lines, rest = (rest + chunk).split(b"\n")
        session = int(lines[-1]) if lines else session
    if session:
        kill_session(session)
