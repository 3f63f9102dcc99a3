"""The placement on this machine: queues in the book of leases and starts the agent as a process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from jupyter_paddle_gpu.core.agentspec import AgentSpec
from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.errors import AgentUnreachable, PaddleGpuError, PlacementError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.base import Grant, Order, Overview, Pending, Waiting
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.channel import AgentProcess, LocalPlaced, connect
from jupyter_paddle_gpu.placement.local.lease import Ticket
from jupyter_paddle_gpu.placement.private import write_private

START_PATIENCE_S = 30.0  # a loaded machine takes seconds to start Python


class TicketGrant:
    """A ticket of the book that holds its devices; without a ticket no device was asked for."""

    why = ""  # a process starts, or it does not

    def __init__(self, ticket: Ticket | None, devices: tuple[Device, ...]) -> None:
        self.ticket = ticket
        self.devices = devices

    def give_back(self) -> None:
        """See Grant."""
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            ticket.release()


class NoDevices:
    """The Pending of a request for no device: granted at once."""

    async def granted(self) -> Grant:
        return TicketGrant(None, ())

    async def waiting(self) -> Waiting:
        return Waiting()

    async def update(self, request: GpuRequest) -> None:
        """Nothing in the queue could change."""

    def cancel(self) -> None:
        """Nothing is in the queue."""


class TicketPending:
    """A ticket in the queue. One thread waits for it, so that any number of sessions may wait for hours."""

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket
        self._cancelled = threading.Event()
        loop = asyncio.get_running_loop()
        self._grant: asyncio.Future[Grant] = loop.create_future()
        name = f"paddle-gpu-wait-{ticket.claim_id}"
        threading.Thread(target=self._wait, args=(loop,), name=name, daemon=True).start()

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        outcome: Grant | PaddleGpuError
        try:
            devices = self._ticket.wait(self._cancelled)
        except (PaddleGpuError, OSError) as error:
            outcome = error if isinstance(error, PaddleGpuError) else PlacementError(f"The queue is lost: {error}")
        else:
            outcome = TicketGrant(self._ticket, devices)
        if self._cancelled.is_set() or isinstance(outcome, PaddleGpuError):
            self._ticket.release()
        with suppress(RuntimeError):  # the loop has ended with its process: so does the lease
            loop.call_soon_threadsafe(self._settle, outcome)

    def _settle(self, outcome: Grant | PaddleGpuError) -> None:
        if self._grant.done():
            if not isinstance(outcome, PaddleGpuError):
                outcome.give_back()
        elif isinstance(outcome, PaddleGpuError):
            self._grant.set_exception(outcome)
        else:
            self._grant.set_result(outcome)

    async def granted(self) -> Grant:
        """See Pending."""
        return await asyncio.shield(self._grant)

    async def waiting(self) -> Waiting:
        """See Pending."""
        return await asyncio.to_thread(lambda: Waiting(self._ticket.position(), self._ticket.why()))

    async def update(self, request: GpuRequest) -> None:
        """See Pending."""
        await asyncio.to_thread(self._ticket.change, request)

    def cancel(self) -> None:
        """See Pending."""
        self._cancelled.set()  # the thread, which wakes at once, releases what it has
        if not self._grant.done():
            self._grant.cancel()
        elif not self._grant.cancelled() and self._grant.exception() is None:
            self._grant.result().give_back()


class LocalPlacement:
    """Sessions on this machine. ``directory`` is the book that all users of the machine share."""

    remote: ClassVar[bool] = False

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def close(self) -> None:
        """See Placement. Nothing is open."""

    async def check(self, request: GpuRequest) -> None:
        """See Placement."""
        await asyncio.to_thread(self._check, request)

    def _check(self, request: GpuRequest) -> None:
        book = Book(self._directory)
        book.ladder().get(request.tier)
        if request.gpus:
            book.new_claim(request, "")

    async def overview(self) -> Overview:
        """See Placement."""
        return await asyncio.to_thread(lambda: Book(self._directory).overview())

    async def request(self, order: Order) -> Pending:
        """See Placement."""
        if order.request.gpus == 0:
            return NoDevices()
        try:
            ticket = await asyncio.to_thread(self._file, order)
        except OSError as error:
            raise PlacementError(
                f"The leases of this machine cannot be read or written in {self._directory}: {error}",
                "Make the directory writable for you, or name another one in JUPYTER_PADDLE_GPU_BOOK.",
            ) from error
        return TicketPending(ticket)

    def _file(self, order: Order) -> Ticket:
        return Ticket.file(Book(self._directory), order.request, order.label)

    async def start(self, order: Order, grant: Grant) -> LocalPlaced:
        """See Placement."""
        if not isinstance(grant, TicketGrant):
            raise TypeError("A grant of another placement")
        try:
            process = self._spawn(order, grant.ticket, grant.devices)
            if grant.ticket is not None:
                grant.ticket.hand_over()
                grant.ticket = None
            reader, writer, _ = await connect(
                order.files.socket, process, START_PATIENCE_S, lambda: _failure(process, order)
            )
        except OSError as error:
            raise PlacementError(f"The session's agent cannot be started: {error}") from error
        except AgentUnreachable as error:
            raise PlacementError(error.fault, error.next_step) from None
        finally:
            grant.give_back()
        return LocalPlaced(order.files.socket, process, (reader, writer), grant.devices)

    def _spawn(self, order: Order, ticket: Ticket | None, devices: tuple[Device, ...]) -> AgentProcess:
        spec = AgentSpec(
            session=order.session,
            request=order.request,
            devices=devices,
            socket=order.files.socket,
            kernel_log=order.files.kernel_log,
            lease_s=order.lease_s,
            book=None if ticket is None else self._directory,
            claim=None if ticket is None else ticket.claim_id,
            claim_fd=None if ticket is None else ticket.fd,
        )
        order.files.socket.unlink(missing_ok=True)
        write_private(order.files.agent_spec, json.dumps(to_plain(spec)))
        with order.files.agent_log.open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "jupyter_paddle_gpu.agent", str(order.files.agent_spec)],
                # Not the notebook's folder: a file random.py beside the notebook must not become the agent's.
                cwd=order.files.directory,
                env=agent_environment(order.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=() if ticket is None else (ticket.fd,),
            )
        child.returncode = 0  # the agent may outlive this process: Popen is not to wait for it, we do
        return AgentProcess(child.pid, child=True)

    async def adopt(self, order: Order) -> LocalPlaced | None:
        """See Placement."""
        try:
            spec = from_plain(AgentSpec, json.loads(order.files.agent_spec.read_text()))
            reader, writer, pid = await connect(spec.socket, None, 0.0, str)
        except (OSError, ValueError, RecursionError, PaddleGpuError):
            return None
        return LocalPlaced(spec.socket, AgentProcess(pid), (reader, writer), spec.devices)


def agent_environment(kernel_env: Mapping[str, str]) -> dict[str, str]:
    """Return the agent's environment: the kernel's, but for what would keep this server's Python from starting.

    A kernel of another interpreter may bring its own PYTHONPATH and PYTHONHOME; the agent is this interpreter's.
    """
    env = {name: value for name, value in kernel_env.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return env | {name: os.environ[name] for name in ("PYTHONPATH", "PYTHONHOME") if name in os.environ}


def _failure(process: AgentProcess, order: Order) -> str:
    code = process.exit_code
    how = "does not answer" if code is None else f"ended with exit code {code}"
    with suppress(OSError):
        tail = order.files.agent_log.read_text(errors="replace").strip().splitlines()[-5:]
        return "\n  ".join([f"The session's agent {how}; the end of {order.files.agent_log}:", *tail])
    return f"The session's agent {how}"
