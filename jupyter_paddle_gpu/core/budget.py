"""Time as a budget: what a save costs, whether it fits, and when looking after the state is cheap enough."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

# Protection may cost a thousandth of a step. A step that is too short for that is not copied at its boundary: a notice
# then waits for the next boundary, which is near. A step that would keep a notice waiting for longer than PROMPT_S may
# cost more, up to a hundredth.
PROTECTION_SHARE = 0.001
MOST_SHARE = 0.01
PROMPT_S = 0.015


def shortest_step_s(costs_s: Collection[float]) -> float:
    """Return the seconds of the shortest steps whose boundary state is copied every time, where the last copies took
    ``costs_s``.

    The quickest counts: after one that was disturbed, steps that look too short would not be copied, nor measured,
    ever again.
    """
    cost_s = min(costs_s)
    return max(min(cost_s / PROTECTION_SHARE, PROMPT_S), cost_s / MOST_SHARE)


# Snapshots that a training makes by itself may take a hundredth of the time, and come once a minute at most.
PERIODIC_SHARE = 0.01
PERIODIC_LEAST_S = 60.0


def every_s(save_s: float | None) -> float:
    """Return the seconds between two snapshots where nobody says how many; ``save_s`` is one's cost (None: unknown)."""
    return max(PERIODIC_LEAST_S, (save_s or 0.0) / PERIODIC_SHARE)


@dataclass(frozen=True)
class Estimate:
    """What a save would take: ``nbytes`` of state; ``seconds`` None while no rate was measured yet."""

    nbytes: int
    seconds: float | None

    def fits(self, remaining_s: float) -> bool | None:
        """Whether the save ends within ``remaining_s``; None: unknown."""
        return None if self.seconds is None else self.seconds <= remaining_s


# The time of a small save goes to its system calls: it says nothing of one that is much larger.
TELLING_BYTES = 4 * 2**20
TELLING_TIMES = 8


def estimate(
    nbytes: int,
    bytes_per_s: float | None,
    fixed_s: float = 0.05,
    to_write: int | None = None,
    measured_bytes: float = math.inf,
) -> Estimate:
    """Predict a save of ``nbytes`` from the rate of one of ``measured_bytes``; ``fixed_s`` stands for fsync, manifest
    and rename, and ``to_write`` is how many of the bytes are not on the disk yet (None: all)."""
    written = nbytes if to_write is None else to_write
    tells = measured_bytes >= min(TELLING_BYTES, written / TELLING_TIMES)
    return Estimate(nbytes, fixed_s + written / bytes_per_s if bytes_per_s and tells else None)


class Part(Enum):
    """What of a state is saved in the time that is left."""

    ALL = "all"
    TRAINED = "what trains, and not the frozen weights"
    NOTHING = "nothing: an earlier snapshot stays the newest"


def what_fits(all_s: float | None, trained_s: float | None, left_s: float, earlier: bool) -> Part:
    """Choose what to save in ``left_s`` seconds, where saving all takes ``all_s`` and only what trains ``trained_s``
    (None: not measured yet).

    Without an ``earlier`` snapshot nothing is lost by trying, even where it will probably not end in time.
    """
    if all_s is None or trained_s is None or all_s <= left_s:
        return Part.ALL
    if trained_s <= left_s or not earlier:
        return Part.TRAINED if trained_s < all_s else Part.ALL
    return Part.NOTHING


def patience_s(remaining_s: float, save_s: float | None) -> float:
    """How long a notice may wait for a better moment before the save must begin.

    Half of what is left once the save (known) is paid for; a fifth of everything while its cost is unknown.
    """
    if save_s is None:
        return max(0.0, 0.2 * remaining_s)
    return max(0.0, 0.5 * (remaining_s - save_s))
