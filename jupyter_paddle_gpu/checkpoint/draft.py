"""A snapshot that is being written: first its bytes, while the training stands still, then what makes it durable."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from jupyter_paddle_gpu.checkpoint import contents, removal, writer
from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.contents import Contents, TensorFile
from jupyter_paddle_gpu.checkpoint.format import Manifest
from jupyter_paddle_gpu.checkpoint.opening import describe
from jupyter_paddle_gpu.checkpoint.pieces import crc32
from jupyter_paddle_gpu.checkpoint.ranks.parts import files_of
from jupyter_paddle_gpu.checkpoint.room import unwritable
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.writer import Progress
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.ranks import Part
from jupyter_paddle_gpu.core.snapshot import Position, Snapshot

if TYPE_CHECKING:
    from jupyter_paddle_gpu.checkpoint.store import Store

FROZEN_LEAST_BYTES = 2**20  # fewer are not worth a file of their own


class _Needed(TypedDict):
    position: Position | None
    cause: Cause


class Described(_Needed, total=False):
    """What goes with a state into its snapshot; see core.snapshot.Snapshot. ``progress`` gets the bytes written."""

    inexact: tuple[str, ...]
    session: str
    progress: Progress | None


class Draft:
    """One directory of a store that is no snapshot yet. What goes wrong at any step removes it whole.

    The tensor file stays locked until the manifest is in its place: others can tell it from what a dead process left.
    """

    def __init__(self, store: Store, path: Path, state: State, described: Mapping[str, Any]) -> None:
        self._store = store
        self._path = path
        self._state: State | None = state
        self._nbytes = state.nbytes
        self._structure = state.structure
        self._described = dict(described)
        self._tell = self._described.pop("progress", None) or (lambda written: None)
        self._written = 0
        self._fds: list[int] = []
        self._seconds = 0.0
        self._files: dict[str, TensorFile] = {}
        self._contents = b""

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    def write(self) -> None:
        """Hand the bytes to the operating system; the tensors' memory is not looked at again. Raises as Store.save."""
        assert self._state is not None, "written once"  # noqa: S101  # a fault of ours
        frozen = {name: self._state.tensors[name] for name in sorted(self._state.frozen)}
        if sum(tensor.nbytes for tensor in frozen.values()) < FROZEN_LEAST_BYTES:
            frozen = {}
        with self._whole():
            self._write(layout.TENSORS, {k: v for k, v in self._state.tensors.items() if k not in frozen})
            if frozen:
                self._write_once(layout.FROZEN, frozen)
        self._state = None

    def _write(self, name: str, tensors: Mapping[str, RawTensor]) -> None:
        before = self._written
        self._fds.append(writer.create_tensor_file(self._path / name))
        self._files[name] = writer.write_tensors(self._fds[-1], tensors, lambda written: self._tell(before + written))
        self._written += self._files[name].nbytes

    def _write_once(self, name: str, tensors: Mapping[str, RawTensor]) -> None:
        """Refer to the file of an earlier snapshot, where it holds just this and the file system can do it."""
        earlier = self._store.latest(name)
        if earlier is not None and (file := writer.describe_tensors(tensors)) == earlier.file:
            try:
                os.link(earlier.path / name, self._path / name, follow_symlinks=False)
            except OSError as error:  # no such links here, too many, or the snapshot was removed meanwhile
                self._store.links = isinstance(error, FileNotFoundError)
            else:
                status = (self._path / name).lstat()
                if stat.S_ISREG(status.st_mode) and status.st_size == file.nbytes:
                    self._files[name] = file
                    return
                (self._path / name).unlink()
        self._write(name, tensors)

    def write_contents(self) -> bytes:
        """Write and return what the tensor files hold. May be repeated. Raises as Store.save."""
        if not self._contents:
            with self._whole():
                data = contents.encode(Contents(self._files, self._structure))
                writer.write_file(self._path / layout.CONTENTS, data)
                self._contents = data
        return self._contents

    def commit(self, parts: Mapping[int, Part] | None = None) -> Snapshot:
        """Make it durable and a snapshot, and tidy the store. ``parts``: what the ranks from 1 on have written.

        Raises as Store.save.
        """
        with self._whole():
            begun_s = time.perf_counter()
            for fd in self._fds:
                os.fsync(fd)
            data = self.write_contents()
            writer.sync_directory(self._path)
            writer.sync_directory(self._path.parent)
            manifest = self._manifest(data, self._seconds + time.perf_counter() - begun_s, parts or {})
            writer.write_manifest(self._path, layout.encode(manifest))
        self._close()
        snapshot = describe(self._path, manifest)
        self._store.committed(snapshot, self._files, self._written, self._seconds)
        return snapshot

    def _manifest(self, data: bytes, seconds: float, parts: Mapping[int, Part]) -> Manifest:
        sizes = {layout.CONTENTS: len(data), **{name: file.nbytes for name, file in self._files.items()}}
        described = dict(self._described)
        inexact = tuple(described.pop("inexact", ()))
        for rank, part in parts.items():
            inexact += tuple(f"rank {rank}: {text}" for text in part.inexact if text not in inexact)
        return Manifest(
            created_s=time.time(),
            seconds=seconds,
            files={**sizes, **files_of(parts)},
            contents_crc32=crc32(data),
            inexact=inexact,
            parts=tuple(parts[rank].contents_crc32 for rank in sorted(parts)),
            version=layout.VERSION_OF_RANKS if parts else layout.VERSION,
            **described,
        )

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Add up the time of the block, and leave nothing behind where it fails."""
        begun_s = time.perf_counter()
        try:
            yield
        except OSError as error:
            self._discard()
            raise unwritable(self._store.directory, error, self._nbytes) from error
        except (ValueError, RecursionError) as error:
            self._discard()
            raise SnapshotError(f"The state cannot be saved: {error}", "Earlier snapshots are untouched.") from error
        except BaseException:  # interrupted
            self._discard()
            raise
        finally:
            self._seconds += time.perf_counter() - begun_s

    def discard(self) -> None:
        """It will not become a snapshot. May be repeated."""
        self._discard()

    def _discard(self) -> None:
        self._close()
        removal.discard(self._path)

    def _close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())
