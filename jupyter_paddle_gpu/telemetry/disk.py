"""The disk that takes the snapshots. Asked in threads of its own: a network disk whose server is gone never answers."""

from __future__ import annotations

import os
import threading
from pathlib import Path

PATIENCE_S = 0.1
SILENT = "the disk of the snapshots does not answer"


class DiskReader:
    """Reads free and total bytes of the disk that has, or will have, ``path``; for one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asking: threading.Thread | None = None
        self._found: tuple[int, int] | None = None
        self._fault = SILENT

    def read(self) -> tuple[tuple[int, int] | None, str]:
        """Return free and all bytes, or None and the reason. Waits ``PATIENCE_S`` at most."""
        if self._asking is None:
            self._asking = threading.Thread(target=self._ask, name="paddle-gpu-disk", daemon=True)
            self._asking.start()
        self._asking.join(PATIENCE_S)
        if self._asking.is_alive():
            return None, SILENT
        self._asking = None
        return self._found, self._fault

    def _ask(self) -> None:
        try:
            place = next(place for place in (self._path, *self._path.parents) if place.exists())
            status = os.statvfs(place)
        except (OSError, StopIteration) as error:
            self._found, self._fault = None, f"the disk of the snapshots does not tell it: {error}"
            return
        self._found, self._fault = (status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize), ""
