"""A job: a command in a process group of its own that holds a lease as long as it lives, and not longer."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.placement.local.parent import tied_to_parent


class CannotRun(PaddleGpuError):
    """The command does not exist or is no program."""


class Job:
    """Use it in a with block: nothing of its group is left when the block ends, however it ends.

    The command inherits ``keep_fd``: if we are killed, whatever goes on using the devices goes on holding the lease.
    Raises CannotRun when the command cannot be run.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], keep_fd: int) -> None:
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
        return code if code >= 0 else 128 - code

    def signal(self, signum: int) -> None:
        """Signal the job's whole group; one that has ended is no error."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the second: only a setuid process is left
            os.killpg(self._process.pid, signum)
