"""The snapshots of one notebook or script: a directory with a snapshot in each subdirectory."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint import reader, removal, writer
from jupyter_paddle_gpu.checkpoint.format import Broken, Manifest
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.checkpoint.writer import Progress
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt, SnapshotError, SnapshotNotFound, StoreUnwritable
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position, Snapshot
from jupyter_paddle_gpu.core.units import format_size

log = logging.getLogger(__name__)

_LOOKS = 10  # each finds what another process has saved since, where all that was listed is removed already
_NAME = re.compile(r"(\d{6,18})-(?:step-\d+|state)")


class Store:
    """Snapshots in ``directory``, which is made at the first save. Several processes may save into one directory.

    ``keep`` is how many of the newest whole ones stay; the newest one that is exact stays in any case. ``rate`` is the
    measured bytes per second of the last save (None: none yet).
    """

    def __init__(self, directory: Path, keep: int = 3) -> None:
        self.directory = directory
        self.keep = keep
        self.rate: float | None = None

    def save(
        self,
        state: State,
        *,
        position: Position | None,
        cause: Cause,
        inexact: tuple[str, ...] = (),
        session: str = "",
        progress: Progress | None = None,
    ) -> Snapshot:
        """Write a snapshot, durable when this returns, and remove those that are no longer kept.

        Raises StoreUnwritable with the reason, SnapshotError for a state that the format cannot hold; what was there
        before is untouched then.
        """
        started_s = time.perf_counter()
        try:
            writer.make_directory(self.directory)
            path, sequence = self._new_place(position)
        except OSError as error:
            raise self._unwritable(error, state.nbytes) from error
        described = {"position": position, "cause": cause, "inexact": inexact, "session": session, "sequence": sequence}
        try:
            manifest = self._write(path, state, started_s, progress, described)
        except OSError as error:
            removal.discard(path)
            raise self._unwritable(error, state.nbytes) from error
        except (ValueError, RecursionError) as error:
            removal.discard(path)
            raise SnapshotError(f"The state cannot be saved: {error}", "Earlier snapshots are untouched.") from error
        except BaseException:  # interrupted: discarded whole
            removal.discard(path)
            raise
        self.rate = manifest.nbytes / max(1e-6, time.perf_counter() - started_s)
        self._tidy()
        return _describe(path, manifest)

    def list(self) -> tuple[Snapshot, ...]:
        """Return the complete snapshots, newest first. A broken one is left out and named in the log."""
        found = []
        for path in self._places():
            try:
                found.append((reader.read_manifest(path), path))
            except FileNotFoundError:
                continue  # being written, or being removed
            except Broken as error:
                log.warning("The snapshot %s is left out: %s", path, error)
        found.sort(key=lambda item: -item[0].sequence)
        return tuple(_describe(path, manifest) for manifest, path in found)

    def load(self, snapshot: Snapshot | Path | None = None) -> tuple[Snapshot, State]:
        """Return a snapshot with its verified state; without an argument the newest good one, naming the broken in the
        log. Raises SnapshotNotFound, or SnapshotCorrupt for the one that was asked for."""
        if snapshot is not None:
            return self._load_one(snapshot if isinstance(snapshot, Path) else snapshot.path)
        broken: dict[str, None] = {}
        for _ in range(_LOOKS):
            vanished = False
            for candidate in self.list():
                try:
                    return self._load_one(candidate.path)
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

    def verify(self, snapshot: Snapshot | Path) -> None:
        """Read every byte of a snapshot. Raises SnapshotCorrupt that names file and fault."""
        self.load(snapshot)

    def delete(self, snapshot: Snapshot) -> None:
        """Remove a snapshot; it is none from the first step on. May be repeated. Raises StoreUnwritable."""
        if snapshot.path.parent != self.directory:
            raise SnapshotNotFound(f"{snapshot.path} is not in {self.directory}", "Choose one of the listed ones.")
        try:
            removal.remove(snapshot.path)
        except OSError as error:
            raise self._unwritable(error, 0) from error

    def _load_one(self, path: Path) -> tuple[Snapshot, State]:
        missing = SnapshotNotFound(f"{path} is not a complete snapshot", "%paddle_gpu snapshots lists them.")
        try:
            manifest = reader.read_manifest(path)
            return _describe(path, manifest), reader.read_state(path, manifest)
        except FileNotFoundError:
            raise missing from None
        except Broken as error:
            if not os.path.lexists(path / layout.MANIFEST):  # another process has removed it meanwhile
                raise missing from None
            raise SnapshotCorrupt(f"The snapshot {path} is broken: {error}", "Nothing of it was used.") from None

    def _write(
        self, path: Path, state: State, started_s: float, progress: Progress | None, described: Mapping[str, Any]
    ) -> Manifest:
        """Write both files of a snapshot; the tensor file stays locked until the manifest is in its place."""
        fd = writer.create_tensor_file(path / layout.TENSORS)
        try:
            header, entries = writer.write_tensors(fd, state.tensors, progress)
            writer.sync_directory(path)
            writer.sync_directory(self.directory)
            manifest = Manifest(
                created_s=time.time(),
                seconds=time.perf_counter() - started_s,
                nbytes=max([len(header), *(entry.end for entry in entries.values())]),
                header_nbytes=len(header),
                header_crc32=zlib.crc32(header),
                tensors=entries,
                structure=state.structure,
                **described,
            )
            writer.write_manifest(path, layout.encode(manifest))
        finally:
            os.close(fd)
        return manifest

    def _places(self) -> tuple[Path, ...]:
        try:
            found = self.directory.iterdir()
            return tuple(path for path in found if _NAME.fullmatch(path.name) and not path.is_symlink())
        except (FileNotFoundError, NotADirectoryError):
            return ()

    @staticmethod
    def _sequence(path: Path) -> int:
        return int(path.name.split("-")[0])

    def _new_place(self, position: Position | None) -> tuple[Path, int]:
        """Make the next directory; two processes that save at once get different ones."""
        what = "state" if position is None else f"step-{position.step}"
        sequence = 1 + max((self._sequence(path) for path in self._places()), default=0)
        while True:
            claim = self.directory / f"{sequence:06d}-{what}"
            with contextlib.suppress(FileExistsError):
                claim.mkdir(mode=0o700)
                if not any(self._sequence(path) == sequence for path in self._places() if path != claim):
                    return claim, sequence
                claim.rmdir()  # with another step in its name the other process's directory does not collide
            sequence += 1

    def _tidy(self) -> None:
        """Remove what is no longer kept, and what dead processes began. A fault here is no fault of the save."""
        snapshots = self.list()
        whole = [snapshot for snapshot in snapshots if reader.has_tensor_file(snapshot.path, snapshot.nbytes)]
        exact = [snapshot for snapshot in whole if not snapshot.inexact]
        kept = {snapshot.path for snapshot in (*snapshots[: self.keep], *whole[: self.keep], *exact[:1])}
        try:
            for snapshot in snapshots:
                if snapshot.path not in kept:
                    removal.remove(snapshot.path)
            for path in self._places():
                removal.remove_abandoned(path)
        except OSError as error:
            log.warning("An old snapshot could not be removed from %s: %s", self.directory, error)

    def _unwritable(self, error: OSError, needed_bytes: int) -> StoreUnwritable:
        try:
            place = next(place for place in (self.directory, *self.directory.parents) if place.exists())
            status = os.statvfs(place)
            free = f"{format_size(status.f_bavail * status.f_frsize)} free, {format_size(needed_bytes)} needed"
        except OSError:
            free = f"{format_size(needed_bytes)} needed"
        return StoreUnwritable(
            f"No snapshot could be written to {self.directory}: {error.strerror or error} ({free})",
            "Earlier snapshots are untouched. Make room or choose another directory: JUPYTER_PADDLE_GPU_SNAPSHOTS.",
        )


def _describe(path: Path, manifest: Manifest) -> Snapshot:
    return Snapshot(
        path=path,
        step=None if manifest.position is None else manifest.position.step,
        nbytes=manifest.nbytes,
        seconds=manifest.seconds,
        cause=manifest.cause,
        created_s=manifest.created_s,
        inexact=manifest.inexact,
        session=manifest.session,
    )
