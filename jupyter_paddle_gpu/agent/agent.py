"""The agent: what it hears from its peers, from signals and from the book of leases goes to whom it concerns."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine, Mapping
from dataclasses import replace

from jupyter_paddle_gpu.agent.calls import CallRelay
from jupyter_paddle_gpu.agent.evictor import Evictor
from jupyter_paddle_gpu.agent.keeper import Keeper
from jupyter_paddle_gpu.agent.kernel_life import KernelLife
from jupyter_paddle_gpu.agent.lastword import RunningCell
from jupyter_paddle_gpu.agent.lease_watch import Lease, LeaseWatch
from jupyter_paddle_gpu.agent.peers import Peer, Peers
from jupyter_paddle_gpu.agent.viewers import Viewers
from jupyter_paddle_gpu.checkpoint.where import snapshot_root
from jupyter_paddle_gpu.core import wire
from jupyter_paddle_gpu.core.agentspec import ENV_AGENT, ENV_SESSION, AgentSpec
from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.device import DeviceKind, environment_of
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.telemetry import KernelSample, Reading
from jupyter_paddle_gpu.core.wire import EXIT_EVICTED, Message, Role
from jupyter_paddle_gpu.telemetry.sampler import Sampler

logger = logging.getLogger(__name__)

LAST_MESSAGES_S = 0.3  # how long a peer may take to read what we said at the end


class Agent:
    """One session's agent, from ``run`` to its result, the exit code. ``lease``: None where nothing is held."""

    def __init__(self, spec: AgentSpec, lease: Lease | None, keeper: Keeper) -> None:
        self._spec = spec
        self._request = spec.request
        self._keeper = keeper
        self._loop = asyncio.get_running_loop()
        self._peers = Peers(spec.socket, self, spec.listen)
        self._calls = CallRelay()
        self._cell = RunningCell(cpu=any(device.kind is DeviceKind.CPU for device in spec.devices))
        self._kernel = KernelLife(kernel_environment(spec, os.environ), spec.kernel_log, keeper, self)
        self._evictor = Evictor(self._kernel, self.kernel_says)
        self._lease = None if lease is None else LeaseWatch(lease, self._lease_lost)
        # Its own devices only: so each device of a machine is looked at once, and no agent needs to know of another.
        own = [device.id for device in spec.devices if device.kind is not DeviceKind.CPU]
        self._sampler = Sampler(own, self._has_seen, snapshot_root())
        self._viewers = Viewers(self._sampler.watch)
        self._period_s = 0.0  # how often the server wants to see
        self._kernel_said: KernelSample | None = None
        self._exit_code = EXIT_EVICTED
        self._tasks: set[asyncio.Task[None]] = set()
        self._server_gone: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        """Live until the session is stopped or evicted. Raises PlacementError when the socket cannot be opened."""
        self._loop.add_signal_handler(signal.SIGCHLD, self._kernel.reap)
        for signum in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(signum, self._terminated)
        try:
            await self._peers.listen()
            self._count_down_to_server_gone()
            if self._lease is not None:
                self._lease.start()
            await self._evictor.serve()
        finally:
            self._sampler.close()
            await self._kernel.end(0)
            self._keeper.close()
            if self._lease is not None:
                self._lease.release()
            await self._say_last_word()
            await self._peers.close(LAST_MESSAGES_S)
        return self._exit_code

    def joined(self, peer: Peer) -> None:
        """See peers.Listener."""
        if peer.role is Role.SERVER and self._server_gone is not None:
            self._server_gone.cancel()
        if peer.role is not Role.KERNEL:
            for message in self._standing():
                peer.send(message)

    def left(self, peer: Peer) -> None:
        """See peers.Listener."""
        self._calls.left(peer)
        self._viewers.left(peer)
        if peer.role is Role.KERNEL:
            self._evictor.left(peer)
        if peer.role is Role.SERVER and not self._peers.of(Role.SERVER):
            self._watch_kernel(0)
            self._count_down_to_server_gone()

    def heard(self, peer: Peer, message: Message) -> None:
        """See peers.Listener."""
        logger.debug("%s: %s", peer, message)
        if peer.role is Role.SERVER and isinstance(message, (wire.Start, wire.Stop, wire.Evict)):
            self._heard_of_life(message)
        elif peer.role is Role.SERVER and isinstance(message, wire.Interrupt):
            self._interrupt(message.signum)
        elif peer.role is Role.SERVER and isinstance(message, wire.Change):
            self._change(message.request)
        elif peer.role in (Role.SERVER, Role.KERNEL) and isinstance(message, wire.Watch):
            self._viewers.asks(peer, message.period_s)
            if peer.role is Role.SERVER:
                self._watch_kernel(message.period_s)
        elif peer.role in (Role.SERVER, Role.KERNEL) and isinstance(message, wire.Answer):
            self._calls.answer(peer, message)
        elif peer.role is Role.SERVER and isinstance(message, wire.Call):
            self._calls.ask(peer, message, self._evictor.serving)
        elif peer.role is Role.KERNEL and isinstance(message, wire.Ready):
            self._kernel.ready()
            self._evictor.ready(peer)
            self._tell_kernel(wire.Watch(self._period_s))
        elif peer.role is Role.KERNEL and isinstance(message, wire.Served):
            self._evictor.served(peer, message)
        elif peer.role is Role.KERNEL and isinstance(message, (wire.CellRunning, wire.CellDone)):
            self._cell.heard(message)
        elif peer.role is Role.KERNEL and isinstance(message, wire.Call):
            self._relay(peer, message)
        elif peer.role is Role.KERNEL and isinstance(message, (wire.Saved, wire.Restored, wire.KernelSeen)):
            self._heard_of_training(message)
        else:
            logger.warning("Not a message for %s to send, ignored: %s", peer, type(message).__name__)

    def kernel_says(self, message: Message) -> None:
        """See kernel_life.KernelListener."""
        if isinstance(message, wire.KernelStarted):
            self._cell.forget()
            self._kernel_said = None
        for peer in self._peers.of(Role.SERVER, Role.OBSERVER):
            peer.send(message)

    def something_ended(self) -> None:
        """See kernel_life.KernelListener."""
        self._evictor.something_ended()

    def _heard_of_life(self, message: wire.Start | wire.Stop | wire.Evict) -> None:
        if isinstance(message, wire.Start):
            self._own(self._kernel.start(message), "start")
        elif isinstance(message, wire.Evict):
            self._evictor.notice(message.notice)
        else:
            self._exit_code = 0
            self._evictor.notice(EvictionNotice(Cause.SHUTDOWN, message.save_s))

    def _heard_of_training(self, message: wire.Saved | wire.Restored | wire.KernelSeen) -> None:
        if isinstance(message, wire.KernelSeen):
            self._kernel_said = message.sample
        self.kernel_says(message)

    def _watch_kernel(self, period_s: float) -> None:
        self._period_s = period_s
        self._tell_kernel(wire.Watch(period_s))

    def _tell_kernel(self, message: Message) -> None:
        if (kernel := self._evictor.serving) is not None:
            kernel.send(message)

    def _has_seen(self, reading: Reading) -> None:
        """Called in the sampler's thread."""
        self._loop.call_soon_threadsafe(self._tell_viewers, reading)

    def _tell_viewers(self, reading: Reading) -> None:
        self._viewers.tell(replace(reading, kernel=self._kernel_said), self._loop.time())

    def _interrupt(self, signum: int) -> None:
        if signum not in signal.valid_signals():
            logger.warning("There is no signal %d", signum)
        elif self._kernel.process is not None:
            self._kernel.process.signal(signum)

    def _change(self, request: GpuRequest) -> None:
        self._request = request
        if self._lease is not None:
            self._lease.change(request)

    def _relay(self, peer: Peer, call: wire.Call) -> None:
        servers = self._peers.of(Role.SERVER)
        if not servers and call.method == "status":
            peer.send(wire.Answer(call.id, self._status()))
        else:
            self._calls.ask(peer, call, servers[-1] if servers else None)

    def _status(self) -> Mapping[str, object]:
        """What is known without a server."""
        spec = self._spec
        state = "running" if self._evictor.eviction is None else "evicting"
        devices, request = to_plain(spec.devices), to_plain(self._request)
        return {"session": spec.session, "state": state, "devices": devices, "request": request, "server": False}

    def _standing(self) -> list[Message]:
        """Where things stand, for a peer that comes late."""
        messages = list(self._kernel.history)
        if self._evictor.eviction is not None:
            messages.append(wire.Noticed(self._evictor.eviction.current(self._loop.time())))
        if self._evictor.answer is not None:
            messages.append(self._evictor.answer)
        return messages

    def _terminated(self) -> None:
        self._evictor.notice(EvictionNotice(Cause.SIGTERM, self._request.grace_s))

    def _lease_lost(self, notice: EvictionNotice) -> None:
        """Called in the lease's thread."""
        self._loop.call_soon_threadsafe(self._evictor.notice, notice)

    async def _say_last_word(self) -> None:
        """Answer the cell of a kernel that could not; an end that the user asked for needs no answer."""
        eviction, process = self._evictor.eviction, self._kernel.process
        if eviction is None or eviction.notice.cause is Cause.SHUTDOWN or process is None:
            return
        if process.start.connection_file is not None:
            arguments = process.start.connection_file, eviction.notice, self._evictor.answer
            await asyncio.to_thread(self._cell.say_last_word, *arguments)

    def _count_down_to_server_gone(self) -> None:
        def gone() -> None:
            self._evictor.notice(EvictionNotice(Cause.SERVER_GONE, self._request.grace_s))

        self._server_gone = self._loop.call_later(self._spec.lease_s, gone)

    def _own(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def kernel_environment(spec: AgentSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the kernel's environment: ours, what belongs to the session, and its devices.

    A session that asked for no device sees what a plain kernel sees. JPY_PARENT_PID becomes our pid: the server may
    come and go, the kernel ends with its agent.
    """
    shown = environment_of(spec.devices) if spec.devices else {}
    ours = {ENV_SESSION: spec.session, ENV_AGENT: str(spec.socket), "JPY_PARENT_PID": str(os.getpid())}
    return {**environ, **ours, **shown}
