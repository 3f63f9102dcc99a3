"""The ladder of priorities: who gets a GPU first, and who gives one up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jupyter_paddle_gpu.core.errors import RequestError


@dataclass(frozen=True)
class Tier:
    """One rung. ``priority`` orders (higher first); ``preempts`` says whether it may take GPUs from lower tiers.

    Same meaning as a Kubernetes PriorityClass with preemptionPolicy ``PreemptLowerPriority`` or ``Never``:
    ``Never`` does not protect, it only does not take.
    """

    name: str
    priority: int
    preempts: bool = True
    description: str = ""


@dataclass(frozen=True)
class Ladder:
    """All tiers of a machine or a cluster, highest first."""

    tiers: tuple[Tier, ...]

    def __iter__(self) -> Iterator[Tier]:
        return iter(self.tiers)

    def get(self, name: str) -> Tier:
        """Return the tier of this name. Raises RequestError that lists the names there are."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        names = ", ".join(tier.name for tier in self.tiers)
        raise RequestError(f"There is no tier {name!r}", f"Choose one of: {names}.")

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Mapping[str, object]]) -> Ladder:
        """Make a ladder from an administrator's ``{name: {priority, preempts, description}}``. Raises RequestError."""
        tiers = []
        for name, fields in mapping.items():
            priority = fields.get("priority")
            unknown = set(fields) - {"priority", "preempts", "description"}
            if isinstance(priority, bool) or not isinstance(priority, int) or unknown:
                raise RequestError(
                    f"Tier {name!r} is not understood: {dict(fields)}",
                    'Write {"priority": 100000, "preempts": true, "description": "…"} with a whole number.',
                )
            preempts, description = fields.get("preempts", True), fields.get("description", "")
            tiers.append(Tier(name, priority, bool(preempts), str(description)))
        if not tiers:
            raise RequestError("The ladder has no tier", "Name at least one tier.")
        return cls(tuple(sorted(tiers, key=lambda tier: -tier.priority)))


DEFAULT_LADDER = Ladder(
    (
        Tier("urgent", 1_000_000, description="must run now: an incident, a demonstration"),
        Tier("service", 900_000, description="serves users"),
        Tier("experiment", 500_000, description="somebody waits for the result today"),
        Tier("training", 300_000, description="long training jobs"),
        Tier("batch", 100_000, description="whenever there is room"),
        Tier("notebook", -10, preempts=False, description="interactive: may be taken away, saves itself, comes back"),
    )
)
