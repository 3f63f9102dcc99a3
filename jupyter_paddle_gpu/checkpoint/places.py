"""The directories of a store, one for each snapshot: numbered in the order in which they were begun."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from jupyter_paddle_gpu.core.snapshot import Position

_NAME = re.compile(r"(\d{6,18})-(?:step-\d+|state)")


def places(directory: Path) -> tuple[Path, ...]:
    """Return the directories that are named as a snapshot is, in no order; none where there is no ``directory``."""
    try:
        return tuple(path for path in directory.iterdir() if _NAME.fullmatch(path.name) and not path.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return ()


def new_place(directory: Path, position: Position | None) -> tuple[Path, int]:
    """Make the next one and return it with its number; two processes that save at once get different ones.

    Raises OSError.
    """
    what = "state" if position is None else f"step-{position.step}"
    sequence = 1 + max((_sequence(path) for path in places(directory)), default=0)
    while True:
        claim = directory / f"{sequence:06d}-{what}"
        with contextlib.suppress(FileExistsError):
            claim.mkdir(mode=0o700)
            if not any(_sequence(path) == sequence for path in places(directory) if path != claim):
                return claim, sequence
            claim.rmdir()  # with another step in its name the other process's directory does not collide
        sequence += 1


def _sequence(path: Path) -> int:
    return int(path.name.split("-")[0])
