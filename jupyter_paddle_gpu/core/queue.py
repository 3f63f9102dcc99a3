"""Who gets which device of a machine, who must give one up, and why somebody waits: pure functions over the claims.

The rules are those of the Kubernetes scheduler, made strict: higher priority first; within a priority first come,
first served; the head of the queue is never overtaken; a tier that preempts takes devices from the lowest priority
below its own, the latest comer first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Claim:
    """One request for devices, waiting or holding.

    ``since_s`` (seconds since the epoch) orders claims of one priority; ``devices`` are the ids held (empty: waiting);
    ``evicts`` names the holders that this claim takes its devices from, ``evicted_by`` the claim that this holder
    gives way to (None: it may stay; derived, each claim is written by its owner only).
    """

    id: str
    tier: str
    priority: int
    preempts: bool
    gpus: int
    since_s: float
    owner: str = ""  # the account of the person, to show
    label: str = ""  # the notebook or the command, to show
    pid: int = 0
    grace_s: float = 60.0
    devices: tuple[str, ...] = ()
    evicts: tuple[str, ...] = ()
    evicted_by: str | None = None


@dataclass(frozen=True)
class Plan:
    """What should happen next: ``grants`` claim id → device ids; ``evictions`` victim id → claim id it yields to."""

    grants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    evictions: Mapping[str, str] = field(default_factory=dict)


def waiting_in_order(claims: Iterable[Claim]) -> list[Claim]:
    """Return the waiting claims, the next one to be served first."""
    return sorted((c for c in claims if not c.devices), key=lambda c: (-c.priority, c.since_s, c.id))


def with_takers(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims with ``evicted_by`` derived from who names whom: only a waiting claim of a higher tier that
    preempts counts, and of several the first in the queue."""
    by_id = {claim.id: replace(claim, evicted_by=None) for claim in claims}
    for taker in waiting_in_order(by_id.values()):
        for victim in taker.evicts if taker.preempts else ():
            held = by_id.get(victim)
            if held is not None and held.devices and held.evicted_by is None and held.priority < taker.priority:
                by_id[victim] = replace(held, evicted_by=taker.id)
    return list(by_id.values())


def take_turn(claims: Sequence[Claim], claim_id: str, devices: Sequence[str]) -> Claim:
    """Return what a waiting claim becomes now: with its devices, or naming those who must give way to it.

    ``claims`` are all live ones (of ``with_takers``), ``devices`` the ids of the machine. Whom it named before stays
    named while it holds: its notice is out. Raises KeyError where the claim is not among them.
    """
    by_id = {claim.id: claim for claim in claims}
    mine = by_id[claim_id]
    if mine.devices:
        return mine
    decided = plan(claims, devices)
    if claim_id in decided.grants:
        return replace(mine, devices=decided.grants[claim_id], evicts=())
    named = {victim for victim in mine.evicts if victim in by_id and by_id[victim].devices}
    named |= {victim for victim, taker in decided.evictions.items() if taker == claim_id}
    return replace(mine, evicts=tuple(sorted(named)))


def plan(claims: Sequence[Claim], devices: Sequence[str]) -> Plan:
    """Decide over all live ``claims`` on a machine's ``devices`` (ids). Devices on their way back are reserved for the
    claims in the order of the queue, so that nobody is evicted twice for the same need."""
    held = {d for claim in claims for d in claim.devices}
    free = [d for d in devices if d not in held]
    returning = sum(len(c.devices) for c in claims if c.evicted_by is not None)
    grants: dict[str, tuple[str, ...]] = {}
    evictions: dict[str, str] = {}
    stuck = False  # somebody ahead waits: nobody behind may be granted anything
    for claim in waiting_in_order(claims):
        if not stuck and claim.gpus <= len(free):
            grants[claim.id] = tuple(free[: claim.gpus])
            free = free[claim.gpus :]
            continue
        stuck = True
        missing = claim.gpus - len(free) - returning
        victims = _victims(claim, claims, evictions, missing) if claim.preempts and missing > 0 else []
        coming = sum(len(victim.devices) for victim in victims)
        if coming < missing:
            break  # it waits, and everybody behind it
        evictions.update({victim.id: claim.id for victim in victims})
        returning = max(0, len(free) + returning + coming - claim.gpus)
        free = []
    return Plan(grants, evictions)


def _victims(claim: Claim, claims: Sequence[Claim], chosen: Mapping[str, str], missing: int) -> list[Claim]:
    """Return the holders that ``claim`` should take ``missing`` devices from: lowest priority and latest comer first,
    without those that turn out not to be needed. Empty where there are not enough."""
    below = [
        c for c in claims if c.devices and c.priority < claim.priority and c.evicted_by is None and c.id not in chosen
    ]
    below.sort(key=lambda c: (c.priority, -c.since_s, c.id))
    victims: list[Claim] = []
    for candidate in below:
        if sum(len(v.devices) for v in victims) >= missing:
            break
        victims.append(candidate)
    total = sum(len(v.devices) for v in victims)
    if total < missing:
        return []
    for victim in reversed(victims[:]):  # reprieve the most important first
        if total - len(victim.devices) >= missing:
            victims.remove(victim)
            total -= len(victim.devices)
    return victims


def position(claims: Iterable[Claim], claim_id: str) -> int | None:
    """Return the 1-based place of a waiting claim in the queue; None when it does not wait."""
    for place, claim in enumerate(waiting_in_order(claims), start=1):
        if claim.id == claim_id:
            return place
    return None


def position_after_eviction(claims: Iterable[Claim], claim_id: str) -> int:
    """Return the place that a holder will have when it queues again: behind those of its priority and above who wait
    now, without the one that takes its devices."""
    claims = list(claims)
    mine = next((c for c in claims if c.id == claim_id), None)
    if mine is None:
        return 1 + len(waiting_in_order(claims))
    return 1 + sum(1 for c in waiting_in_order(claims) if c.priority >= mine.priority and c.id != mine.evicted_by)


def why_waiting(claims: Sequence[Claim], claim_id: str, devices: Sequence[str], noun: str = "GPU") -> str:
    """Return one sentence: what a waiting claim waits for, and who holds it. Empty when it does not wait."""
    place = position(claims, claim_id)
    if place is None:
        return ""
    claim = next(c for c in claims if c.id == claim_id)
    held = {d for c in claims for d in c.devices}
    free = len([d for d in devices if d not in held])
    plural = "" if claim.gpus == 1 else "s"
    text = f"Needs {claim.gpus} {noun}{plural}, {free} of {len(devices)} free"
    if place == 1 and claim.gpus <= free:
        return f"{text}: it is served next."
    holders = ", ".join(
        f"{c.label or c.id} ({c.tier}{', giving it up' if c.evicted_by else ''})" for c in claims if c.devices
    )
    text += f"; held by {holders or 'nobody'}"
    if place > 1:
        ahead = waiting_in_order(claims)[: place - 1]
        text += f"; behind {', '.join(f'{c.label or c.id} ({c.tier})' for c in ahead)}"
    elif claim.preempts and not any(c.evicted_by == claim.id for c in claims) and free < claim.gpus:
        text += "; nobody of a lower tier holds enough"
    elif not claim.preempts:
        text += f"; tier {claim.tier} does not take GPUs from others"
    return text + "."
