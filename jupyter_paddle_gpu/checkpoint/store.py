"""The snapshots of one notebook or script: a directory with a snapshot in each subdirectory."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint import reader, removal, writer
from jupyter_paddle_gpu.checkpoint.contents import TensorFile
from jupyter_paddle_gpu.checkpoint.draft import Draft, describe
from jupyter_paddle_gpu.checkpoint.format import Broken, Manifest
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.checkpoint.writer import Progress
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt, SnapshotNotFound, StoreUnwritable
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position, Snapshot
from jupyter_paddle_gpu.core.units import format_size

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing since Python 3.11

log = logging.getLogger(__name__)

_LOOKS = 10  # each finds what another process has saved since, where all that was listed is removed already
_NAME = re.compile(r"(\d{6,18})-(?:step-\d+|state)")


class _Needed(TypedDict):
    position: Position | None
    cause: Cause


class Described(_Needed, total=False):
    """What goes with a state into its snapshot; see core.snapshot.Snapshot. ``progress`` gets the bytes written."""

    inexact: tuple[str, ...]
    session: str
    progress: Progress | None


@dataclass(frozen=True)
class Written:
    """A tensor file of the snapshot in ``path``."""

    path: Path
    file: TensorFile


class Store:
    """Snapshots in ``directory``, which is made at the first save. Several processes may save into one directory.

    ``keep`` is how many of the newest whole ones stay; the newest one that is exact stays in any case. ``rate`` is the
    measured bytes per second of the last save (None: none yet).
    """

    def __init__(self, directory: Path, keep: int = 3) -> None:
        self.directory = directory
        self.keep = keep
        self.rate: float | None = None
        self._latest: dict[str, Written] | None = None  # tensor files of the newest snapshot

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
        try:
            writer.make_directory(self.directory)
            path, sequence = self._new_place(described["position"])
        except OSError as error:
            raise self.unwritable(error, state.nbytes) from error
        draft = Draft(self, path, state, {"sequence": sequence, **described})
        draft.write()
        return draft

    def list(self) -> tuple[Snapshot, ...]:
        """Return the complete snapshots, newest first. A broken one is left out and named in the log."""
        return tuple(describe(path, manifest) for path, manifest in self._manifests())

    def _manifests(self) -> tuple[tuple[Path, Manifest], ...]:
        found = []
        for path in self._places():
            try:
                found.append((path, reader.read_manifest(path)))
            except FileNotFoundError:
                continue  # being written, or being removed
            except Broken as error:
                log.warning("The snapshot %s is left out: %s", path, error)
        return tuple(sorted(found, key=lambda item: -item[1].sequence))

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
            raise self.unwritable(error, 0) from error

    def _load_one(self, path: Path) -> tuple[Snapshot, State]:
        missing = SnapshotNotFound(f"{path} is not a complete snapshot", "%paddle_gpu snapshots lists them.")
        try:
            manifest = reader.read_manifest(path)
            return describe(path, manifest), reader.read_state(path, manifest)
        except FileNotFoundError:
            raise missing from None
        except Broken as error:
            if not os.path.lexists(path / layout.MANIFEST):  # another process has removed it meanwhile
                raise missing from None
            raise SnapshotCorrupt(f"The snapshot {path} is broken: {error}", "Nothing of it was used.") from None

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

    def committed(self, path: Path, files: Mapping[str, TensorFile], rate: float) -> None:
        """A draft has become a snapshot: learn from it, and tidy."""
        self.rate = rate
        self._latest = {name: Written(path, file) for name, file in files.items()}
        self.tidy()

    def latest(self, name: str) -> Written | None:
        """Return a tensor file of the newest snapshot, that new ones may refer to; None: there is none."""
        if self._latest is None:
            self._latest = {}
            for path, manifest in self._manifests()[:1]:
                with contextlib.suppress(Broken):
                    found = reader.read_contents(path, manifest).files
                    self._latest = {name: Written(path, file) for name, file in found.items()}
        return self._latest.get(name)

    def tidy(self) -> None:
        """Remove what is no longer kept, and what dead processes began. A fault here is no fault of the save."""
        snapshots = self._manifests()
        whole = [item for item in snapshots if reader.has_files(*item)]
        exact = [item for item in whole if not item[1].inexact]
        kept = {path for path, _ in (*snapshots[: self.keep], *whole[: self.keep], *exact[:1])}
        try:
            for path, _ in snapshots:
                if path not in kept:
                    removal.remove(path)
            for path in self._places():
                removal.remove_abandoned(path)
        except OSError as error:
            log.warning("An old snapshot could not be removed from %s: %s", self.directory, error)

    def unwritable(self, error: OSError, needed_bytes: int) -> StoreUnwritable:
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
