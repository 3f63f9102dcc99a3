"""One session's life: queue, start the agent, attend to it, and queue again when the devices were taken away."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial

from jupyter_paddle_gpu.core import wire
from jupyter_paddle_gpu.core.environment import ENV_AWAITED
from jupyter_paddle_gpu.core.errors import AgentUnreachable, PaddleGpuError, PlaceTaken
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.session import Event, State
from jupyter_paddle_gpu.placement.base import Gone, Grant, Pending, Placed, Placement, Reconnected
from jupyter_paddle_gpu.server.granting import after_refusals, await_grant, start
from jupyter_paddle_gpu.server.hearing import Hearing
from jupyter_paddle_gpu.server.line import Line
from jupyter_paddle_gpu.server.ports import HeldPorts
from jupyter_paddle_gpu.server.record import Launch
from jupyter_paddle_gpu.server.session import Session
from jupyter_paddle_gpu.server.sight import Sight

logger = logging.getLogger(__name__)

Commands = Callable[["Driver", wire.Call], Coroutine[None, None, object]]
SHORT_S = 0.2  # a place that comes as soon is none that anybody has waited for


class Driver:
    """Drives one session. Runs on the manager's loop."""

    def __init__(self, session: Session, placement: Placement, commands: Commands, sight: Sight) -> None:
        self.session = session
        self.placement = placement
        self.pending: Pending | None = None  # in the queue without a device
        self.ahead: Pending | None = None  # in the queue already, before the devices held are given up
        self.line = Line(session.record.session, sight)
        self._granted: Grant | None = None  # devices on which the agent is being started
        self._ports = HeldPorts()
        self._life: asyncio.Task[None] | None = None
        self._helpers: set[asyncio.Task[object]] = set()
        self._hearing = Hearing(session, self.line, partial(commands, self), self.in_background)
        self._awaited = False  # clients have waited for the kernel that is about to start

    @property
    def placed(self) -> Placed | None:
        """The session's agent; None: it has none."""
        return self.line.placed

    async def start(self, launch: Launch) -> None:
        """Start the kernel, or start it again: in place where an agent holds devices, else when they are granted."""
        session = self.session
        self._hearing.starting()
        if self._life is None or self._life.done():
            session.state, session.stopping = State.REQUESTED, False
            session.restarted(launch)
            self._begin(None)
            return
        session.restarted(launch)
        if self.placed is not None and session.state is not State.EVICTING:
            session.move(Event.KERNEL_GONE)
            with suppress(AgentUnreachable):  # its end is heard, and handled, in _attend
                await self._start_kernel(self.placed)

    def adopt(self, placed: Placed | None, launch: Launch) -> None:
        """Go on with the agent of an earlier server, or with the queueing of an evicted session (None)."""
        self.session.state = State.STARTING if placed else State.WAITING
        self.session.restarted(launch)
        self._begin(placed)

    def _begin(self, placed: Placed | None) -> None:
        self._life = asyncio.create_task(self._live(placed), name=f"paddle-gpu-{self.session.record.session}")

    async def signal(self, signum: int) -> None:
        """Send the kernel's processes a signal; without a kernel there is nobody to hear it."""
        await self.line.tell(wire.Interrupt(signum))

    async def stop(self, save_s: float) -> None:
        """End the session. Waiting, it leaves the queue at once; running, the agent gets ``save_s`` seconds for a save,
        which it finishes without us. May be repeated: the first one counts."""
        if self.session.stopping:
            return
        self.session.stopping = True
        self.session.files.record.unlink(missing_ok=True)
        self._leave_queue()
        if self._granted is not None:
            self._granted.give_back()
        await self.line.tell(wire.Stop(save_s))

    async def gone(self, patience_s: float) -> bool:
        """Wait for the session's end after ``stop``; False where it takes longer."""
        if self._life is not None and not self._life.done():
            await asyncio.wait({self._life}, timeout=patience_s)
        return self._life is None or self._life.done()

    async def close(self) -> None:
        """Leave the session as it is: this process ends. The agent goes on without us for its lease."""
        tasks = [*self._helpers, *([self._life] if self._life else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # For the commands of a user.

    async def evict(self, cause: Cause) -> None:
        """Let the agent save and end; the session then queues again, with ``ahead`` where that is set."""
        if self.session.state is not State.EVICTING:
            await self.line.tell(wire.Evict(EvictionNotice(cause, self.session.record.request.grace_s)))

    async def change_in_place(self, request: GpuRequest) -> None:
        """Use another tier, grace and memory from now on."""
        if self.pending is not None:
            await self.pending.update(request)
        if self.placed is not None:
            await self.placed.send(wire.Change(request))
        self.session.requested(request)

    def swap_pending(self, pending: Pending) -> None:
        """Wait with ``pending`` instead of what the session has waited with."""
        old, self.pending = self.pending, pending
        if old is not None:
            old.cancel()

    def in_background(self, work: Coroutine[None, None, object]) -> None:
        """Run ``work`` as a task of this session, which keeps, and cancels, it."""
        task = asyncio.ensure_future(work)
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)

    def _leave_queue(self) -> None:
        for pending in (self.pending, self.ahead):
            if pending is not None:
                pending.cancel()
        self.pending = self.ahead = self.session.wanted = None

    # The life.

    async def _live(self, placed: Placed | None) -> None:
        session = self.session
        try:
            fresh = placed is None
            while not session.stopping and (placed := placed or await self._place()) is not None:
                gone = await self._attend(placed, fresh)
                placed, fresh = None, True
                if session.stopping:
                    break
                if not session.noticed and gone.cause is None and gone.exit_code != wire.EXIT_EVICTED:
                    self._leave_queue()
                    session.failed("The session's agent ended by itself", gone.exit_code or 1)
                    return
                session.lost(gone)
            session.move(Event.STOP)
            session.kernel_ended(0)
        except (PaddleGpuError, OSError) as error:
            self._leave_queue()
            session.failed(str(error), 1)
        except Exception as error:  # a fault of ours: told all the same, or the notebook would wait for ever
            logger.exception("Session %s is lost", session.record.session)
            self._leave_queue()
            session.failed(f"{type(error).__name__}: {error}", 1)
        finally:
            self._ports.release()
            if session.stopping:
                session.ownership.release()
                shutil.rmtree(session.files.directory, ignore_errors=True)

    async def _place(self) -> Placed | None:
        """Return the agent on devices of ours; None where the session is stopped before."""
        refusals = 0
        while (grant := await self._grant()) is not None:
            self._granted = grant
            try:
                return await start(self.session, self.placement, grant)
            except PlaceTaken as error:
                if self.session.stopping:
                    break
                refusals = refusals + 1 if error.by_node else 0
                logger.info("%s is placed anew: %s", self.session.record.launch.label, error)
                self.session.move(Event.GONE)
                await after_refusals(refusals, error)
            finally:
                self._granted = None
        return None

    async def _grant(self) -> Grant | None:
        session = self.session
        self._ports.hold(session.record.launch.connection)
        session.queued(True)
        ahead, self.ahead, session.wanted = self.ahead, None, None
        begun_s = time.monotonic()
        self.pending = ahead or await self.placement.request(session.order())
        grant = await await_grant(session, lambda: self.pending)
        if grant is None:
            self._leave_queue()
            return None
        self.pending = None
        self._awaited = session.state is State.WAITING or time.monotonic() - begun_s > SHORT_S
        session.move(Event.SCHEDULED)
        return grant

    async def _attend(self, placed: Placed, fresh: bool) -> Gone:
        session = self.session
        self.line.begin(placed)
        session.devices, session.noticed = placed.devices, False
        session.queued(False)
        self._ports.release()
        try:
            await self._greet(placed, fresh)
            while (message := await placed.receive()) is not None:
                if isinstance(message, Reconnected):
                    self.line.again()
                    await self._greet(placed, fresh=False)
                else:
                    self._hearing.hear(message)
            return await placed.wait_gone()
        finally:
            self.line.end()
            session.devices = ()
            await placed.close()

    async def _greet(self, placed: Placed, fresh: bool) -> None:
        """Tell the agent what it must know. One that is not ``fresh`` may know some of it: from a server that was
        killed, or over a connection that broke; a kernel that was started is not started again."""
        with suppress(AgentUnreachable):  # then its end is heard
            if self.session.stopping:
                await placed.send(wire.Stop())
            elif self.ahead is not None and self.session.wanted is None:
                await self.evict(Cause.CHANGED)  # other devices were asked for while the agent started
            else:
                await placed.send(wire.Change(self.session.record.request))
                await self._start_kernel(placed, again=fresh)
        await self.line.look()

    async def _start_kernel(self, placed: Placed, again: bool = True) -> None:
        launch, awaited = self.session.record.launch, self._awaited
        env = {**launch.env, ENV_AWAITED: "1"} if awaited else launch.env
        await placed.send(wire.Start(launch.command, launch.cwd, env, launch.connection_file, again))
