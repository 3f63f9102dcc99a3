"""What people and programs are told about a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from jupyter_paddle_gpu.core.notice import Cause


@dataclass(frozen=True)
class Position:
    """The resume point: ``step`` counts from 0 over all epochs, ``epoch`` and ``batch`` from 0.

    The next step to run is ``step``; it takes batch ``batch`` of epoch ``epoch``.
    """

    step: int
    epoch: int
    batch: int


@dataclass(frozen=True)
class Snapshot:
    """One complete snapshot on disk.

    ``path`` is its directory; ``step`` the number of finished steps (None: no position was known); ``nbytes`` what it
    takes on disk; ``seconds`` how long the save took; ``created_s`` seconds since the Unix epoch; ``inexact`` one line
    for each part that will not come back exactly (empty: bit for bit); ``session`` the kernel session that
    made it (empty: none); ``pinned``: it stays until somebody removes it; ``ranks``: how many processes have made it.
    """

    path: Path
    step: int | None
    nbytes: int
    seconds: float
    cause: Cause
    created_s: float
    inexact: tuple[str, ...] = ()
    session: str = ""
    pinned: bool = False
    ranks: int = 1


class SaveOutcome(str, Enum):
    """How a notice was answered."""

    SAVED = "saved"
    NOTHING = "nothing"  # nothing to save: no training, nothing kept
    FAILED = "failed"  # the previous snapshot stays the newest


@dataclass(frozen=True)
class Served:
    """The notice was answered. ``snapshot`` is the directory (None: none was made), ``step`` its finished steps,
    ``detail`` a sentence for people."""

    outcome: SaveOutcome
    snapshot: Path | None = None
    step: int | None = None
    seconds: float = 0.0
    detail: str = ""
