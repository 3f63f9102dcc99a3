"""The machine at one look: what is free, who holds the rest, who waits, and what a request would get now."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_paddle_gpu.core import queue
from jupyter_paddle_gpu.core.device import Device, DeviceKind
from jupyter_paddle_gpu.core.queue import Claim
from jupyter_paddle_gpu.core.tiers import Tier
from jupyter_paddle_gpu.language import translated
from jupyter_paddle_gpu.placement.base import Overview
from jupyter_paddle_gpu.server.view import SessionView

_ASKED = "?"  # the claim that nobody has made yet


@dataclass(frozen=True)
class Holder:
    """Who holds a device. ``since_s`` is a Unix time; ``evicted``: it is giving the device up; ``session`` is the id of
    a session of this server (None: somebody else's)."""

    owner: str
    label: str
    tier: str
    since_s: float
    evicted: bool
    session: str | None


@dataclass(frozen=True)
class DeviceView:
    """A device and who holds it; None: it is free."""

    id: str
    kind: DeviceKind
    name: str
    memory_bytes: int | None
    holder: Holder | None


@dataclass(frozen=True)
class WaitingView:
    """Who waits, at the 1-based ``position``, for how many devices, and ``why``."""

    position: int
    gpus: int
    tier: str
    owner: str
    label: str
    since_s: float
    why: str
    session: str | None


@dataclass(frozen=True)
class TierView:
    """A tier, and what a request of it would get: ``now`` devices at once, ``by_taking`` when those of lower tiers have
    given way to it."""

    name: str
    priority: int
    preempts: bool
    description: str
    now: int
    by_taking: int


@dataclass(frozen=True)
class MachineView:
    """``noun`` is what a device of this machine is called."""

    noun: str
    total: int
    free: int
    devices: tuple[DeviceView, ...]
    waiting: tuple[WaitingView, ...]
    tiers: tuple[TierView, ...]


def look(overview: Overview, sessions: Sequence[SessionView], now_s: float) -> MachineView:
    """Return the machine as ``overview`` has it; ``sessions`` are those of this server, ``now_s`` the Unix time."""
    ids = [device.id for device in overview.devices]
    claims = overview.claims
    held = {device: claim for claim in claims for device in claim.devices}
    noun = "CPU slot" if overview.devices and overview.devices[0].kind is DeviceKind.CPU else "GPU"
    return MachineView(
        noun=noun,
        total=len(ids),
        free=len([device for device in ids if device not in held]),
        devices=tuple(_device(device, held.get(device.id), sessions) for device in overview.devices),
        waiting=tuple(
            _waiting(position, claim, queue.why_waiting(claims, claim.id, ids, noun), sessions)
            for position, claim in enumerate(queue.waiting_in_order(claims), start=1)
        ),
        tiers=tuple(_tier(tier, claims, ids, now_s) for tier in overview.tiers),
    )


def _device(device: Device, claim: Claim | None, sessions: Sequence[SessionView]) -> DeviceView:
    holder = None
    if claim is not None:
        session = next((view.id for view in sessions if device.id in view.devices), None)
        gives_up = claim.evicted_by is not None
        holder = Holder(claim.owner, claim.label, claim.tier, claim.since_s, gives_up, session)
    return DeviceView(device.id, device.kind, device.name, device.memory_bytes, holder)


def _waiting(position: int, claim: Claim, why: str, sessions: Sequence[SessionView]) -> WaitingView:
    session = next((view.id for view in sessions if (view.position, view.label) == (position, claim.label)), None)
    return WaitingView(
        position, claim.gpus, claim.tier, claim.owner, claim.label, claim.since_s, translated(why), session
    )


def _tier(tier: Tier, claims: Sequence[Claim], ids: Sequence[str], now_s: float) -> TierView:
    """Ask the queue itself: each number of devices as if somebody asked for them now."""
    now = by_taking = 0
    for gpus in range(1, len(ids) + 1):
        asked = Claim(_ASKED, tier.name, tier.priority, tier.preempts, gpus, now_s)
        plan = queue.plan([*claims, asked], ids)
        if _ASKED in plan.grants:
            now = by_taking = gpus
        elif _ASKED in plan.evictions.values():
            by_taking = gpus
    said = dataclasses.replace(tier, description=translated(tier.description))
    return TierView(**dataclasses.asdict(said), now=now, by_taking=by_taking)
