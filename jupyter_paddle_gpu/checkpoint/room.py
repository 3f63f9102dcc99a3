"""Whether there is room for a snapshot: on the disk, and within the quota."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from jupyter_paddle_gpu.checkpoint.retention import Held, taken
from jupyter_paddle_gpu.checkpoint.where import ENV_QUOTA, ENV_SNAPSHOTS
from jupyter_paddle_gpu.core.errors import StoreUnwritable
from jupyter_paddle_gpu.core.units import format_size


def beyond_quota(nbytes: int, quota_bytes: int, held: Sequence[Held], directory: Path) -> tuple[str, str] | None:
    """Return fault and next step where a snapshot of ``nbytes`` cannot stay beside what is pinned; None: it can."""
    pinned = taken([snapshot for snapshot in held if snapshot.pinned])
    if nbytes + pinned <= quota_bytes:
        return None
    what = f"A snapshot of {format_size(nbytes)}" + (f" beside {format_size(pinned)} pinned" if pinned else "")
    return (
        f"{what} is more than the quota of {format_size(quota_bytes)} of {directory}.",
        f"Ask for a larger {ENV_QUOTA}" + (", or unpin a snapshot." if pinned else "."),
    )


def unwritable(directory: Path, error: OSError, needed_bytes: int = 0) -> StoreUnwritable:
    """Return the error that names why nothing was written, and how much room there is. ``needed_bytes`` 0: unknown."""
    needed = f"{format_size(needed_bytes)} needed" if needed_bytes else ""
    room = ", ".join(part for part in (_free(directory), needed) if part)
    return StoreUnwritable(
        f"No snapshot could be written to {directory}: {error.strerror or error}" + (f" ({room})" if room else ""),
        f"Earlier snapshots are untouched. Make room or choose another directory: {ENV_SNAPSHOTS}.",
    )


def _free(directory: Path) -> str:
    """Return what is free where ``directory`` is, or would be; empty where nobody can say."""
    try:
        place = next(place for place in (directory, *directory.parents) if place.exists())
        status = os.statvfs(place)
    except OSError:
        return ""
    return f"{format_size(status.f_bavail * status.f_frsize)} free"
