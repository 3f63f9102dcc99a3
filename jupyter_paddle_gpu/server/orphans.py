"""Sessions on disk whose server is no more: those that live are taken over, what nobody will want again is removed."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from jupyter_paddle_gpu.placement.private import make_private
from jupyter_paddle_gpu.server.record import REFRESH_S, Ownership, Record, read_records
from jupyter_paddle_gpu.server.settings import Settings

logger = logging.getLogger(__name__)

SWEEP_S = 2 * 3600.0  # the longest grace is an hour

Claimed = tuple[Record, Ownership]


def claim(settings: Settings, known: Container[str]) -> list[Claimed]:
    """Return the sessions that this process has taken over now; those ``known`` are its own. May be repeated."""
    make_private(settings.data)
    found = []
    for record in read_records(settings.data / "sessions"):
        try:
            ownership = None if record.session in known else _claim(settings, record)
        except OSError as error:  # root's, say: the others come back all the same
            logger.warning("%s cannot be taken over: %s", record.launch.label, error)
            continue
        if ownership is not None:
            found.append((record, ownership))
    for directory in (settings.data / "sessions").glob("*"):
        with suppress(OSError):
            _sweep(settings, directory)
    return found


def _claim(settings: Settings, record: Record) -> Ownership | None:
    files = settings.files(record.session)
    ownership = Ownership(files)
    age_s = ownership.age_s()
    if not ownership.take():
        return None
    if record.adoptable and age_s <= record.lease_s + REFRESH_S:
        return ownership
    ownership.release()
    if record.adoptable or age_s >= SWEEP_S:  # its agent has saved and ended long ago
        shutil.rmtree(files.directory, ignore_errors=True)
    return None


def _sweep(settings: Settings, directory: Path) -> None:
    """Remove what an agent left that had still to save when its server ended."""
    files = settings.files(directory.name)
    ownership = Ownership(files)
    if not files.record.exists() and ownership.age_s() > SWEEP_S and ownership.take():
        ownership.release()
        shutil.rmtree(directory, ignore_errors=True)
