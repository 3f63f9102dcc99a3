"""Words about a snapshot."""

from __future__ import annotations

import time

from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.core.units import format_duration


def what(snapshot: Snapshot) -> str:
    """Return where a snapshot stands in its training."""
    return "no position" if snapshot.step is None else f"step {snapshot.step}"


def age(snapshot: Snapshot) -> str:
    """Return how old a snapshot is, by this machine's clock."""
    return format_duration(max(0.0, time.time() - snapshot.created_s))
