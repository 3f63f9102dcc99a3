"""Which snapshots stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Held:
    """A snapshot as retention sees it. ``whole``: its files are there in their sizes; ``files`` are the bytes of each
    by its identity on the disk: one that several snapshots refer to counts once."""

    path: Path
    whole: bool
    exact: bool
    pinned: bool
    files: Mapping[object, int]


def superfluous(snapshots: Sequence[Held], keep: int, quota_bytes: int | None) -> list[Path]:
    """Return what may go of these snapshots, which are sorted from the newest to the oldest; the oldest first.

    The ``keep`` newest stay, and the ``keep`` newest whole ones, as far as the quota allows. The newest whole one, the
    newest of those that is exact, and what is pinned stay in any case.
    """
    whole = [held for held in snapshots if held.whole]
    exact = [held for held in whole if held.exact]
    must = {held.path for held in (*whole[:1], *exact[:1], *(held for held in snapshots if held.pinned))}
    kept = must | {held.path for held in (*snapshots[:keep], *whole[:keep])}
    for held in reversed(snapshots):
        if quota_bytes is None or taken([other for other in snapshots if other.path in kept]) <= quota_bytes:
            break
        if held.path not in must:
            kept.discard(held.path)
    return [held.path for held in reversed(snapshots) if held.path not in kept]


def taken(snapshots: Sequence[Held]) -> int:
    """Return the bytes that these take on the disk."""
    files: dict[object, int] = {}
    for held in snapshots:
        files.update(held.files)
    return sum(files.values())
