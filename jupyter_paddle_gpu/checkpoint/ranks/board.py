"""The board where the ranks of a training leave their notes: one small file for each, in the snapshot directory.

Each note is written by its rank alone, whole or not at all, and read by opening it anew: that is all that a network
mount without locks promises. A note of an earlier run is told by its nonces: rank 0 names the nonce that it has seen of
each other rank, every other one that of rank 0, and nobody believes a note that does not name its own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypeVar

from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.ranks import Answer, Call, World
from jupyter_paddle_gpu.telemetry.processes import lives

_DIRECTORY = ".ranks"

Note = TypeVar("Note", Call, Answer)


class Board:
    """The notes beside the snapshots in ``directory``."""

    def __init__(self, directory: Path, world: World) -> None:
        self._directory = directory / _DIRECTORY
        self._world = world

    def pin(self, note: Call | Answer) -> None:
        """Leave this rank's note in place of its last one. Raises OSError."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        place = self._place(self._world.rank)
        temporary = place.with_suffix(".tmp")
        temporary.write_text(json.dumps(to_plain(note)))
        temporary.replace(place)

    def call(self) -> Call | None:
        """Return rank 0's note; None: there is none that can be read."""
        return self._read(0, Call)

    def answers(self) -> dict[int, Answer]:
        """Return the notes of the others, by rank."""
        found = {rank: self._read(rank, Answer) for rank in range(1, self._world.size)}
        return {rank: answer for rank, answer in found.items() if answer is not None}

    def _place(self, rank: int) -> Path:
        return self._directory / f"rank-{rank}.json"

    def _read(self, rank: int, kind: type[Note]) -> Note | None:
        try:
            return from_plain(kind, json.loads(self._place(rank).read_text()))
        except (OSError, ValueError, WireError):
            return None


def home() -> str:
    """Name the place where process ids mean the same: this machine since its start, and its space of ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def gone(note: Call | Answer) -> bool:
    """Whether the process that left this note is known to have ended; False where nobody here can know."""
    if not note.home or note.home != home():
        return False
    return note.pid != os.getpid() and not lives(note.pid)
