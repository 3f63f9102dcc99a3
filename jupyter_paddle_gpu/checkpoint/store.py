"""The snapshots of one notebook or script: a directory with a snapshot in each subdirectory."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint import reader, removal, writer
from jupyter_paddle_gpu.checkpoint.contents import Contents, TensorFile
from jupyter_paddle_gpu.checkpoint.draft import Described, Draft
from jupyter_paddle_gpu.checkpoint.format import Broken, Manifest
from jupyter_paddle_gpu.checkpoint.opening import describe, load_one, missing, readable
from jupyter_paddle_gpu.checkpoint.places import new_place, places
from jupyter_paddle_gpu.checkpoint.ranks import parts
from jupyter_paddle_gpu.checkpoint.retention import Held, superfluous
from jupyter_paddle_gpu.checkpoint.room import beyond_quota, unwritable
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.checkpoint.where import KEEP, limits
from jupyter_paddle_gpu.checkpoint.writer import Progress
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt, SnapshotNotFound, StoreUnwritable
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.ranks import World
from jupyter_paddle_gpu.core.snapshot import Snapshot

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing since Python 3.11

log = logging.getLogger(__name__)

_LOOKS = 10  # each finds what another process has saved since, where all that was listed is removed already


@dataclass(frozen=True)
class Written:
    """A tensor file of the snapshot in ``path``."""

    path: Path
    file: TensorFile


def open_store(directory: Path, world: World | None = None) -> Store:
    """Return the store of this directory, with the limits that the environment sets."""
    allowed = limits()
    return Store(directory, allowed.keep, allowed.quota_bytes, world)


class Store:
    """Snapshots in ``directory``, which is made at the first save. Several processes may save into one directory.

    ``keep`` is how many of the newest whole ones stay, ``quota_bytes`` what all may take (None: as much as there is);
    see retention. ``world`` is the rank whose state is loaded. ``rate`` is the measured bytes per second of the last
    save, of ``rate_bytes`` (None: none yet).
    """

    def __init__(
        self, directory: Path, keep: int = KEEP, quota_bytes: int | None = None, world: World | None = None
    ) -> None:
        self.directory = directory
        self.world = world or World()
        self.keep = keep
        self.quota_bytes = quota_bytes
        self.rate: float | None = None
        self.rate_bytes = math.inf
        self.links = True  # whether the file system has hard links, as far as is known
        self._latest: dict[str, Written] | None = None  # tensor files of the newest snapshot

    def prepare(self) -> None:
        """Make the directory, and see that it takes snapshots. May be repeated. Raises StoreUnwritable."""
        try:
            writer.make_directory(self.directory)
            if not os.access(self.directory, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise unwritable(self.directory, error) from None

    def save(self, state: State, **described: Unpack[Described]) -> Snapshot:
        """Write a snapshot, durable when this returns, and remove those that are no longer kept.

        Raises StoreUnwritable with the reason, SnapshotError for a state that the format cannot hold; what was there
        before is untouched then.
        """
        return self.write(state, **described).commit()

    def write(self, state: State, **described: Unpack[Described]) -> Draft:
        """Hand a snapshot's bytes to the operating system: the state's memory may change when this returns.

        It becomes a snapshot with ``commit``. Raises as ``save`` does.
        """
        if over := self.over_quota(state.nbytes):
            raise StoreUnwritable(*over)
        try:
            writer.make_directory(self.directory)
            path, sequence = new_place(self.directory, described["position"])
        except OSError as error:
            raise unwritable(self.directory, error, state.nbytes) from error
        draft = Draft(self, path, state, {"sequence": sequence, **described})
        draft.write()
        return draft

    def list(self) -> tuple[Snapshot, ...]:
        """Return the complete snapshots, newest first. A broken one is left out and named in the log."""
        return tuple(describe(path, manifest) for path, manifest in self._manifests())

    def _manifests(self) -> tuple[tuple[Path, Manifest], ...]:
        found = []
        for path in places(self.directory):
            try:
                found.append((path, reader.read_manifest(path)))
            except FileNotFoundError:
                continue  # being written, or being removed
            except Broken as error:
                log.warning("The snapshot %s is left out: %s", path, error)
        return tuple(sorted(found, key=lambda item: -item[1].sequence))

    def load(self, snapshot: Snapshot | Path | None = None, progress: Progress | None = None) -> tuple[Snapshot, State]:
        """Return a snapshot with its verified state; without an argument the newest good one, naming the broken in the
        log. ``progress`` gets the bytes read. Raises SnapshotNotFound, or SnapshotCorrupt for the one that was asked
        for."""
        if snapshot is not None:
            path = snapshot if isinstance(snapshot, Path) else snapshot.path
            return load_one(path, self.world, progress, whole=False)
        broken: dict[str, None] = {}
        for _ in range(_LOOKS):
            vanished = False
            for candidate in self.list():
                try:
                    return load_one(candidate.path, self.world, progress, whole=True)
                except SnapshotNotFound:
                    vanished = True
                except SnapshotCorrupt as error:
                    log.warning("%s An older one is used instead.", error)
                    broken[candidate.path.name] = None
            if not vanished:
                break
        if broken:
            raise SnapshotCorrupt(
                f"No snapshot in {self.directory} is whole; broken: {', '.join(broken)}", "Start the training anew."
            )
        raise SnapshotNotFound(f"There is no snapshot in {self.directory}", "Save one first: %paddle_gpu save.")

    def verify(self, snapshot: Snapshot | Path, progress: Progress | None = None) -> None:
        """Read every byte of a snapshot. Raises SnapshotCorrupt that names file and fault."""
        path = snapshot if isinstance(snapshot, Path) else snapshot.path
        with readable(path):
            manifest = reader.read_manifest(path)
            reader.read_state(path, manifest, progress)
            parts.read_others(path, manifest, 0)

    def find(self, name: str) -> Snapshot:
        """Return the newest snapshot with this directory name, path or step. Raises SnapshotNotFound with those there
        are."""
        snapshots = self.list()
        for snapshot in snapshots:
            if name in (snapshot.path.name, str(snapshot.path), str(snapshot.step)):
                return snapshot
        there = ", ".join(item.path.name for item in snapshots) or "none"
        raise SnapshotNotFound(f"There is no snapshot {name!r} in {self.directory}", f"There are: {there}.")

    def contents(self, snapshot: Snapshot) -> Contents:
        """Return what its files hold, without reading the tensors. Raises SnapshotCorrupt, SnapshotNotFound."""
        with readable(snapshot.path):
            return reader.read_contents(snapshot.path, reader.read_manifest(snapshot.path))

    def pin(self, snapshot: Snapshot, pinned: bool = True) -> None:
        """Keep a snapshot until it is deleted, or let retention have it again. May be repeated.

        Raises StoreUnwritable, SnapshotNotFound.
        """
        self._check_ours(snapshot)
        marker = snapshot.path / layout.PINNED
        try:
            if pinned:
                writer.write_file(marker, b"")
            else:
                marker.unlink(missing_ok=True)
            writer.sync_directory(snapshot.path)
        except FileNotFoundError:
            raise missing(snapshot.path) from None
        except OSError as error:
            raise unwritable(self.directory, error) from error

    def delete(self, snapshot: Snapshot) -> None:
        """Remove a snapshot; it is none from the first step on. May be repeated. Raises StoreUnwritable."""
        self._check_ours(snapshot)
        try:
            removal.remove(snapshot.path)
        except OSError as error:
            raise unwritable(self.directory, error) from error

    def _check_ours(self, snapshot: Snapshot) -> None:
        if snapshot.path.parent != self.directory:
            raise SnapshotNotFound(f"{snapshot.path} is not in {self.directory}", "Choose one of the listed ones.")

    def committed(self, snapshot: Snapshot, files: Mapping[str, TensorFile], written: int, seconds: float) -> None:
        """A draft has become a snapshot: learn from it, and tidy."""
        self.rate, self.rate_bytes = written / max(1e-6, seconds), written
        if snapshot.cause is not Cause.DRILL:  # it goes again at once, and may not push out another
            self._latest = {name: Written(snapshot.path, file) for name, file in files.items()}
            self.tidy()

    def to_write(self, nbytes: int, frozen_nbytes: int) -> int:
        """Return how many of a state's bytes a save will probably write: frozen weights are there already."""
        return nbytes - frozen_nbytes if self.links and self.latest(layout.FROZEN) is not None else nbytes

    def latest(self, name: str) -> Written | None:
        """Return a tensor file of the newest snapshot, that new ones may refer to; None: there is none."""
        if self._latest is None:
            self._latest = {}
            for path, manifest in self._manifests()[:1]:
                with contextlib.suppress(Broken):
                    found = reader.read_contents(path, manifest).files
                    self._latest = {name: Written(path, file) for name, file in found.items()}
        return self._latest.get(name)

    def over_quota(self, nbytes: int) -> tuple[str, str] | None:
        """Return fault and next step where a snapshot of ``nbytes`` cannot stay within the quota; None: it can."""
        if self.quota_bytes is None:
            return None
        return beyond_quota(nbytes, self.quota_bytes, self.held(), self.directory)

    def held(self) -> tuple[Held, ...]:
        """Return the snapshots as retention sees them, newest first."""
        return tuple(
            Held(
                path=path,
                whole=reader.has_files(path, manifest),
                exact=not manifest.inexact,
                pinned=os.path.lexists(path / layout.PINNED),
                files=reader.files_on_disk(path),
            )
            for path, manifest in self._manifests()
        )

    def tidy(self) -> None:
        """Remove what is no longer kept, and what dead processes began. A fault here is no fault of the save."""
        try:
            for path in superfluous(self.held(), self.keep, self.quota_bytes):
                removal.remove(path)
            for path in places(self.directory):
                removal.remove_abandoned(path)
        except OSError as error:
            log.warning("An old snapshot could not be removed from %s: %s", self.directory, error)
