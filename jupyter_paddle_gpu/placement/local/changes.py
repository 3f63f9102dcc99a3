"""Tells cheaply whether a book may have changed: one look at its directory's time."""

from __future__ import annotations

import time
from pathlib import Path

LOOK_S = 0.05  # how often those who wait ask
RECHECK_S = 1.0  # how often the claims are read anyway: a process that dies announces nothing
_TICK_NS = 20_000_000  # directory times move in steps of up to 10 ms: a time this young may hide a second change


class Changes:
    """Remembers what was seen of a directory. For one thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen_ns = -1
        self._young = True
        self._recheck_at_s = 0.0

    def due(self) -> bool:
        """Return whether to read the book now; it is then taken as read. Raises OSError where it is gone."""
        version_ns = self._directory.stat().st_mtime_ns
        now_s = time.monotonic()
        if version_ns == self._seen_ns and not self._young and now_s < self._recheck_at_s:
            return False
        self._seen_ns = version_ns
        self._young = abs(time.time_ns() - version_ns) < _TICK_NS
        self._recheck_at_s = now_s + RECHECK_S
        return True
