"""The seam between a session and whatever gives it a place to run: this machine, later a cluster.

A session asks with an Order, waits on a Pending, gets a Grant, and has a Placed while its agent lives. All of it is
used from one event loop; no call blocks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from jupyter_paddle_gpu.core import queue
from jupyter_paddle_gpu.core.agentspec import SessionFiles
from jupyter_paddle_gpu.core.device import Device, DeviceKind
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.queue import Claim
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER, Tier
from jupyter_paddle_gpu.core.wire import Message


@dataclass(frozen=True)
class Order:
    """What a session asks for. ``env`` is the kernel's whole environment; ``label`` is what other people see of the
    session; ``lease_s`` is how long its agent keeps a kernel whose server is gone."""

    session: str
    request: GpuRequest
    files: SessionFiles
    label: str
    lease_s: float
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    """How a request stands: 1-based ``position`` in the queue (None: it does not wait), and ``why`` in a sentence."""

    position: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Gone:
    """How an agent has ended: its ``exit_code`` (None: nobody knows), and the ``cause`` that took its place away (None:
    nothing did, as far as the placement knows)."""

    exit_code: int | None = None
    cause: Cause | None = None


@dataclass(frozen=True)
class Overview:
    """All devices, all live claims on them, and the tiers; of what nobody knows there is none."""

    devices: tuple[Device, ...] = ()
    claims: tuple[Claim, ...] = ()
    tiers: tuple[Tier, ...] = DEFAULT_LADDER.tiers

    @property
    def noun(self) -> str:
        """What a device is called here: GPU, MIG or CPU slot."""
        kind = self.devices[0].kind if self.devices else DeviceKind.GPU
        return "CPU slot" if kind is DeviceKind.CPU else kind.value

    def why(self, claim_id: str) -> str:
        """Return one sentence: what a waiting claim waits for. Empty when it does not wait."""
        return queue.why_waiting(self.claims, claim_id, [device.id for device in self.devices], self.noun)


class Grant(Protocol):
    """Devices that are ours and not in use yet. Ends by ``Placement.start`` or by ``give_back``."""

    @property
    def devices(self) -> tuple[Device, ...]: ...

    @property
    def why(self) -> str:
        """What holds the agent up while it is being started; empty: nothing is known to."""

    def give_back(self) -> None:
        """Return the devices. May be repeated; does nothing once an agent has them."""


class Pending(Protocol):
    """A request in the queue. Ends by its grant or by ``cancel``; then nothing of it is left in the queue."""

    async def granted(self) -> Grant:
        """Wait for the devices, without limit. May be awaited again after a cancellation: that gives nothing up.

        Raises PlacementError where the queue is lost.
        """

    async def waiting(self) -> Waiting:
        """Return the place in the queue and why it waits."""

    async def update(self, request: GpuRequest) -> None:
        """Change tier, grace and memory, keeping the turn within the tier. Raises RequestError."""

    def cancel(self) -> None:
        """Leave the queue at once; devices that were just granted go back. May be repeated."""


@dataclass(frozen=True)
class Reconnected:
    """The connection to an agent broke and is there again: what was on its way may be lost, and the agent has forgotten
    what was asked of it over the old one."""


class Placed(Protocol):
    """An agent that runs, and the connection to it."""

    @property
    def devices(self) -> tuple[Device, ...]: ...

    async def receive(self) -> Message | Reconnected | None:
        """Return the agent's next message; None once the agent has ended. Reconnects by itself, and says so."""

    async def send(self, message: Message) -> None:
        """Tell the agent. Raises AgentUnreachable where it has ended."""

    async def close(self) -> None:
        """Leave the agent to itself: its lease begins to run."""

    async def wait_gone(self) -> Gone:
        """Wait for the agent's end and say how it came."""


class Placement(Protocol):
    """Where sessions run. ``remote``: a kernel's messages leave this machine, and are encrypted for that."""

    remote: ClassVar[bool]

    async def check(self, request: GpuRequest) -> None:
        """Raise RequestError where ``request`` can never be met here."""

    async def request(self, order: Order) -> Pending:
        """Queue for ``order``. Raises RequestError where it can never be met, PlacementError where nobody answers."""

    async def start(self, order: Order, grant: Grant) -> Placed:
        """Start the agent on granted devices and return when it answers. ``grant.give_back`` meanwhile ends it where
        that takes long. Raises PlacementError, PlaceTaken among them; then the devices have gone back."""

    async def overview(self) -> Overview:
        """Return who holds what and who waits. Raises PlacementError."""

    async def adopt(self, order: Order) -> Placed | None:
        """Return the agent that an earlier server started for this session; None where it has ended."""

    async def close(self) -> None:
        """End what watches the machine or the cluster, after what is being removed there is gone. May be repeated."""
