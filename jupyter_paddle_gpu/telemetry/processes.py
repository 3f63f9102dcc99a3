"""The processes that Linux shows, and what it says of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process: ``parent``, ``group`` and ``session`` are ids of processes (0: of none that is seen from here),
    ``started`` clock ticks since the machine's start, which tell it from a later one of the same id; ``ended``: nobody
    has reaped it yet."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    ended: bool


def find(pid: int, proc: Path = PROC) -> Process | None:
    """Return the process of this id; None: there is none that is seen from here."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # proc(5): pid (comm) state ppid pgrp session …; comm may hold anything
    state, parent, group, session = fields[0], *map(int, fields[1:4])
    return Process(pid, parent, group, session, int(fields[19]), state in "ZXx")


def lives(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    process = find(pid)
    return process is not None and not process.ended


def everyone() -> Iterator[Process]:
    """Yield the processes that have not ended, as far as they are seen from here."""
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (process := find(int(entry.name))) is not None and not process.ended:
            yield process
