"""A job: a command in a process group of its own that holds a lease as long as it lives, and not longer."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.placement.local.parent import tied_to_parent
from jupyter_paddle_gpu.telemetry.processes import everyone


class CannotRun(PaddleGpuError):
    """The command does not exist or is no program."""


class Job:
    """Use it in a with block: nothing of its group is left when the block ends, however it ends.

    The command inherits ``keep_fd``: if we are killed, whatever goes on using the devices goes on holding the lease.
    A shell ends at a SIGTERM before what it has started, which may still save: that has ``grace_s`` seconds.
    Raises CannotRun when the command cannot be run.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], keep_fd: int, grace_s: float) -> None:
        self._grace_s = grace_s
        self._end_s: float | None = None  # of the grace, on the monotonic clock; None: nobody has sent SIGTERM
        try:
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                start_new_session=True,
                pass_fds=(keep_fd,),
                preexec_fn=tied_to_parent(),
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotRun(f"{command[0]} cannot be run: {reason}", "Check the command after --.") from None

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *exception: object) -> None:
        self.signal(signal.SIGKILL)  # what the job left behind must not use the devices that go back
        self._process.wait()

    def wait(self, patience_s: float) -> int | None:
        """Return the exit code as a shell says it (128 + signal), or None while the job runs on."""
        try:
            code = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None
        if self._end_s is not None and time.monotonic() < self._end_s and _group_lives(self._process.pid):
            time.sleep(patience_s)
            return None
        return code if code >= 0 else 128 - code

    def signal(self, signum: int) -> None:
        """Signal the job's whole group; one that has ended is no error."""
        if signum == signal.SIGTERM and self._end_s is None:
            self._end_s = time.monotonic() + self._grace_s
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the second: only a setuid process is left
            os.killpg(self._process.pid, signum)


def _group_lives(group: int) -> bool:
    """Whether a process of the group runs; one that has ended and waits to be reaped does not."""
    return any(process.group == group for process in everyone())
