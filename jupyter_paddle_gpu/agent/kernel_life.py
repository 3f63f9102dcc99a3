"""The kernel's life in this agent: one process at a time, started again in place, and none of its orphans left."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from jupyter_paddle_gpu.agent.keeper import Keeper
from jupyter_paddle_gpu.agent.kernel_process import COMPLAIN_S, KernelProcess
from jupyter_paddle_gpu.agent.ports import ports_answer
from jupyter_paddle_gpu.agent.processes import children, kill_group, kill_process
from jupyter_paddle_gpu.core.errors import KernelStartError
from jupyter_paddle_gpu.core.wire import KernelExited, KernelReady, KernelStarted, Message, Start

logger = logging.getLogger(__name__)

POLITE_S = 0.5  # between SIGTERM and SIGKILL where nothing waits to be saved
NOT_RUNNABLE = 126  # what a shell answers for a command that it cannot run
_PROBE_S = 0.03


class KernelListener(Protocol):
    """Who owns the KernelLife."""

    def kernel_says(self, message: Message) -> None:
        """KernelStarted, KernelReady or KernelExited, the last only for an end that nobody asked for."""

    def something_ended(self) -> None:
        """Called when the kernel or a process of it that we have adopted was reaped."""


class KernelLife:
    """Starts, watches and ends the kernel. ``env`` is the whole environment that Start's ``env`` is added to."""

    def __init__(self, env: Mapping[str, str], log: Path, keeper: Keeper, listener: KernelListener) -> None:
        self._env = env
        self._log = log
        self._keeper = keeper
        self._listener = listener
        self._changing = asyncio.Lock()
        self._ending = False
        self._closed = False
        self._watch: asyncio.Task[None] | None = None
        self.process: KernelProcess | None = None
        self.history: list[Message] = []  # what was said about the present process

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive

    async def start(self, start: Start) -> None:
        """Start the kernel; ends the one there is, or leaves it where ``start`` says so. Nothing happens once ``close``
        was called."""
        async with self._changing:
            if self.process is not None and not start.again:
                return
            if not self._closed:
                await self._end_process(POLITE_S)
            if self._closed:  # perhaps since a moment
                return
            self.history.clear()
            try:
                self.process = KernelProcess(start, {**self._env, **start.env}, self._log)
            except (KernelStartError, OSError) as error:  # the second: no descriptors or no memory are left
                logger.warning("%s", error)
                self._say(KernelExited(NOT_RUNNABLE, str(error)))
                return
            self._keeper.guard(self.process.pid)
            self._say(KernelStarted(self.process.pid))
            self._watch = asyncio.create_task(self._look_after(self.process), name="kernel")

    def ready(self) -> None:
        """The present kernel answers. May be repeated."""
        if self.alive and KernelReady() not in self.history:
            self._say(KernelReady())

    async def close(self) -> None:
        """Let no new kernel start, and wait for one that is being started: after this ``process`` stays the same."""
        self._closed = True
        async with self._changing:
            return

    async def end(self, polite_s: float) -> None:
        """End the kernel and every process that comes from it. Returns when they are gone."""
        await self.close()
        await self._end_process(polite_s)

    def reap(self) -> None:
        """Called at SIGCHLD: collect whoever has ended, the kernel or an orphan of it."""
        while (pid := _next_ended()) is not None:
            process = self.process
            if process is not None and process.alive and pid == process.pid:
                if not self._asked:  # an end that was asked for leaves the others in the group their time
                    kill_group(pid, signal.SIGKILL)
                process.reaped(_exit_code(pid))
            else:
                _exit_code(pid)
            self._listener.something_ended()

    async def _look_after(self, process: KernelProcess) -> None:
        """From the start to the end of one process: say when it is ready and when it ended by itself."""
        fault = await self._await_ready(process)
        await asyncio.wait([process.exited])
        asked = self._asked
        if not asked:
            await self._sweep()
        tail = fault or await process.last_lines()
        if not asked and process is self.process:
            self._say(KernelExited(process.exited.result(), tail))

    async def _await_ready(self, process: KernelProcess) -> str:
        """Say when its ports answer. Return why it was killed instead where no client ever could speak to it."""
        file = process.start.connection_file
        while file is not None and process.alive and KernelReady() not in self.history:
            try:
                if await ports_answer(file):
                    self.ready()
                else:
                    await asyncio.wait([process.exited], timeout=_PROBE_S)
            except KernelStartError as error:
                process.signal(signal.SIGKILL)
                return str(error)
        return ""

    async def _end_process(self, polite_s: float) -> None:
        process = self.process
        if process is None:
            return
        self._ending = True
        try:
            await process.end(polite_s)
            await self._sweep()
            self._keeper.guard(0)
            if self._watch is not None:
                await self._watch
        finally:
            self._ending = False

    async def _sweep(self) -> None:
        """SIGKILL the orphans, which are our children now, and theirs, until none is left."""
        waited_s, pause_s = 0.0, 0.01
        while orphans := [pid for pid in children() if pid != self._keeper.pid and not self._is_kernel(pid)]:
            for pid in orphans:
                kill_process(pid)
            await asyncio.sleep(pause_s)
            waited_s, pause_s = waited_s + pause_s, min(0.5, 2 * pause_s)
            if waited_s > COMPLAIN_S:
                logger.warning("Processes %s do not end: is their device stuck?", orphans)
                waited_s = 0.0

    @property
    def _asked(self) -> bool:
        return self._ending or self._closed

    def _is_kernel(self, pid: int) -> bool:
        return self.process is not None and self.process.alive and pid == self.process.pid

    def _say(self, message: Message) -> None:
        self.history.append(message)
        self._listener.kernel_says(message)


def _next_ended() -> int | None:
    """Return a child that has ended and is still to be collected."""
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if ended is None else ended.si_pid


def _exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
