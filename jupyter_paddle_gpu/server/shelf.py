"""The snapshots of one notebook or session as a sidebar shows them, whether its kernel runs or not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.checkpoint import retention, where
from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.language import spoken

if TYPE_CHECKING:
    from jupyter_paddle_gpu.checkpoint.store import Store

NOTEBOOK = "JPY_SESSION_NAME"  # jupyter_server's variable: the notebook's path, by which its kernel names the directory


@dataclass(frozen=True)
class ShelfView:
    """What lies in ``directory``, newest first. ``taken_bytes`` is what it takes on the disk, shared files once;
    ``quota_bytes`` what it may take (None: as much as there is); the disk's size and room are None where it does not
    tell. Each snapshot has the fields of core.snapshot.Snapshot and its ``name``."""

    directory: Path
    snapshots: tuple[Mapping[str, object], ...]
    taken_bytes: int
    quota_bytes: int | None
    disk_free_bytes: int | None
    disk_total_bytes: int | None


class Shelf:
    """Snapshots in the directory of a notebook or session; reads and writes the disk, so not on an event loop.

    ``environ`` is the environment of the kernel that saves there, by which it finds its limits.
    """

    def __init__(self, directory: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._directory = directory
        self._limits = where.limits(environ)

    @classmethod
    def of_session(cls, session: str, cwd: str, environ: Mapping[str, str]) -> Shelf:
        """Return that of a kernel started in ``cwd`` with ``environ``: the same directory that it saves to itself."""
        if notebook := environ.get(NOTEBOOK):
            path = Path(os.path.normpath(Path(cwd) / notebook))
            return cls(where.directory_of(path, environ), environ)
        return cls(where.directory_of_session(session, environ), environ)

    @classmethod
    def of_notebook(cls, notebook: Path, environ: Mapping[str, str]) -> Shelf:
        """Return that of the notebook with this absolute path, for a kernel that would have ``environ``."""
        return cls(where.directory_of(notebook, environ), environ)

    def _store(self) -> Store:
        from jupyter_paddle_gpu.checkpoint.store import Store  # numpy, which a server without snapshots needs not

        return Store(self._directory, self._limits.keep, self._limits.quota_bytes)

    def view(self) -> ShelfView:
        """Return what is there; nothing where no snapshot was ever made."""
        store = self._store()
        free_bytes, total_bytes = _disk(self._directory)
        return ShelfView(
            directory=self._directory,
            snapshots=tuple(named(snapshot) for snapshot in store.list()),
            taken_bytes=retention.taken(store.held()),
            quota_bytes=self._limits.quota_bytes,
            disk_free_bytes=free_bytes,
            disk_total_bytes=total_bytes,
        )

    def pin(self, name: str, pinned: bool) -> None:
        """Keep a snapshot until it is deleted, or let it go when newer ones come. May be repeated.

        Raises SnapshotNotFound, StoreUnwritable.
        """
        store = self._store()
        store.pin(store.find(name), pinned)

    def delete(self, name: str) -> None:
        """Remove a snapshot. Raises SnapshotNotFound, SnapshotError for one that is pinned, StoreUnwritable."""
        store = self._store()
        snapshot = store.find(name)
        if snapshot.pinned:
            raise SnapshotError(f"{snapshot.path.name} is pinned", "Unpin it first.")
        store.delete(snapshot)


def named(snapshot: Snapshot) -> Mapping[str, object]:
    """Return a snapshot as JSON values, with its name; what is not exact in it, in the user's language."""
    return {"name": snapshot.path.name, **to_plain(snapshot), "inexact": spoken(snapshot.inexact)}


def snapshot_of(answer: object) -> Mapping[str, object]:
    """Return the snapshot that a kernel has answered with, checked. Raises WireError."""
    return named(from_plain(Snapshot, answer))


def _disk(directory: Path) -> tuple[int | None, int | None]:
    """Return free and all bytes of the disk that has, or will have, this directory; None where it does not tell."""
    place = next((place for place in (directory, *directory.parents) if place.exists()), directory)
    try:
        status = os.statvfs(place)
    except OSError:
        return None, None
    return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
