"""Removing snapshots and what dead processes began, while other processes list, save and remove beside us."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint import writer

_ABANDONED_S = 24 * 3600.0  # without locks to ask, a save that has not moved for a day is nobody's


def remove(path: Path) -> None:
    """Remove a snapshot, its manifest first: half a removal leaves nothing that could be taken for whole.

    May be repeated, also by two processes at once. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        (path / layout.MANIFEST).unlink()
        writer.sync_directory(path)
    _clear(path)


def discard(path: Path) -> None:
    """Remove what a failed save wrote, as far as the disk allows; a later save removes what stays."""
    with contextlib.suppress(OSError):
        (path / layout.MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


def remove_abandoned(path: Path) -> None:
    """Remove a directory without a manifest that nobody writes any more. Raises OSError.

    A save puts the manifest in its place while it holds the lock of the tensor file. So the lock comes first here and
    the look for the manifest second: the other way round, a save that ends in between would be removed.
    """
    if (path / layout.MANIFEST).exists():
        return
    try:
        fd = os.open(path / layout.TENSORS, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        fd = -1
    try:
        if _is_free(path, fd) and not (path / layout.MANIFEST).exists():
            _clear(path)
    except FileNotFoundError:
        pass  # another process was faster
    finally:
        if fd >= 0:
            os.close(fd)


def _clear(path: Path) -> None:
    """Remove what is left of a snapshot, its tensor file last: by it others see that nobody writes here."""
    with contextlib.suppress(FileNotFoundError):  # another process removes it too
        for name in (layout.CONTENTS, layout.FROZEN, *(part.name for part in path.glob("rank-*.*"))):
            (path / name).unlink(missing_ok=True)
        shutil.rmtree(path)


def _is_free(path: Path, fd: int) -> bool:
    """Whether the writer is gone: its tensor file has bytes and no lock. Age decides where there is no byte yet (the
    writer may just be about to lock the file), and on file systems without locks."""
    changed_s = path.stat().st_mtime
    if fd >= 0:
        changed_s = max(changed_s, os.fstat(fd).st_mtime)
        if os.fstat(fd).st_size and (locked := writer.try_lock(fd)) is not None:
            return locked
    return time.time() - changed_s > _ABANDONED_S
