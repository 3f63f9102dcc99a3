"""One kernel process with everything that it started: its group, its output, its end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from jupyter_paddle_gpu.agent.kernel_log import KernelLog
from jupyter_paddle_gpu.agent.processes import group_alive, kill_group
from jupyter_paddle_gpu.core.errors import KernelStartError
from jupyter_paddle_gpu.core.wire import Start
from jupyter_paddle_gpu.placement.local.parent import tied_to_parent
from jupyter_paddle_gpu.placement.private import make_private, write_private

LAST_OUTPUT_S = 0.3  # how long to wait for the last lines of a process that has ended
COMPLAIN_S = 10.0
LOOK_S = 0.01

logger = logging.getLogger(__name__)


class KernelProcess:
    """Started by the constructor in a session and a group of its own. Raises KernelStartError.

    ``exited`` is set with the exit code (negative: the signal) by ``reaped``, which the owner of SIGCHLD calls.
    """

    def __init__(self, start: Start, env: Mapping[str, str], log_path: Path) -> None:
        self.start = start
        self._log = KernelLog(log_path)
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            self._popen = _spawn(start, env, self._log.sender)
        finally:
            self._log.start()
        self.pid = self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether the process that we started runs."""
        return not self.exited.done()

    @property
    def group_alive(self) -> bool:
        """Whether anything of its group runs: behind ``sh -c …`` the kernel may outlive what we started."""
        return self.alive or group_alive(self.pid)

    def signal(self, signum: int) -> None:
        """Signal the whole group; nothing happens when it has ended."""
        kill_group(self.pid, signum)

    def reaped(self, exit_code: int) -> None:
        self._popen.returncode = exit_code
        self.exited.set_result(exit_code)

    async def end(self, polite_s: float) -> None:
        """End the group: SIGTERM, and SIGKILL after ``polite_s`` seconds. Returns when what we started was reaped."""
        if self.group_alive and polite_s > 0:
            self.signal(signal.SIGTERM)
            end_s = time.monotonic() + polite_s
            while self.group_alive and time.monotonic() < end_s:  # noqa: ASYNC110  # a group has no end to wait for
                await asyncio.sleep(LOOK_S)
        self.signal(signal.SIGKILL)
        while not (await asyncio.wait([self.exited], timeout=COMPLAIN_S))[0]:
            logger.warning("Kernel process %d does not end on SIGKILL: is its device stuck?", self.pid)

    async def last_lines(self) -> str:
        """Return the end of its output, after its end."""
        return await asyncio.get_running_loop().run_in_executor(None, self._log.tail, LAST_OUTPUT_S)


def _spawn(start: Start, env: Mapping[str, str], output: int) -> subprocess.Popen[bytes]:
    if not Path(start.cwd).is_dir():
        raise KernelStartError(f"The kernel's directory {start.cwd} does not exist", "Was the notebook moved?")
    if start.connection is not None and start.connection_file is not None:
        make_private(start.connection_file.parent)
        write_private(start.connection_file, json.dumps(start.connection))
    try:
        return subprocess.Popen(  # see tied_to_parent
            start.command,
            cwd=start.cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=tied_to_parent(),
        )
    except (OSError, ValueError, IndexError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise KernelStartError(f"The kernel's command {list(start.command)} cannot be run: {reason}") from error
