"""A rank's part of a snapshot: rank 0 writes what all have, every other one what differs from it.

Nothing is assumed about how the ranks share the work: a tensor is left to rank 0 where it has the same bytes there
under the same name, by its checksum. Under data parallelism that are parameters and optimizer, under any other kind
it is what happens to be equal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import contents, reader, writer
from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.contents import Contents, TensorFile
from jupyter_paddle_gpu.checkpoint.format import Broken, Manifest
from jupyter_paddle_gpu.checkpoint.pieces import crc32
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.core.ranks import Part


class PartDraft:
    """The part of rank ``rank`` in the directory that rank 0 has made. ``tell`` gets the bytes written."""

    def __init__(self, rank: int, state: State, tell: Callable[[int], None]) -> None:
        self._rank = rank
        self._state = state
        self._described = writer.describe_tensors(state.tensors)
        self._tell = tell

    def write(self, directory: Path, first: Contents) -> Callable[[], Part]:
        """Hand what differs from rank 0's contents ``first`` to the operating system: the state's memory may change
        when this returns. The function that it returns makes the part durable, once. Raises OSError, ValueError."""
        there = first.entries()
        entries = self._described.tensors
        shared = tuple(name for name, entry in entries.items() if there.get(name) == entry)
        own = {name: raw for name, raw in self._state.tensors.items() if name not in set(shared)}
        fd = writer.create_tensor_file(directory / layout.part_tensors(self._rank))
        try:
            file = writer.write_tensors(fd, own, self._tell)
        except BaseException:
            os.close(fd)
            raise
        structure = self._state.structure

        def finish() -> Part:
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            return self._finish(directory, Contents({layout.part_tensors(self._rank): file}, structure, shared), file)

        return finish

    def _finish(self, directory: Path, found: Contents, file: TensorFile) -> Part:
        data = contents.encode(found)
        writer.write_file(directory / layout.part_contents(self._rank), data)
        writer.sync_directory(directory)
        return Part(file.nbytes, len(data), crc32(data))


def files_of(parts: Mapping[int, Part]) -> dict[str, int]:
    """Return the names of these ranks' files with their bytes, as the manifest has them."""
    sizes = {layout.part_tensors(rank): part.tensors_nbytes for rank, part in parts.items()}
    return {**sizes, **{layout.part_contents(rank): part.contents_nbytes for rank, part in parts.items()}}


def read_others(directory: Path, manifest: Manifest, rank: int) -> None:
    """Read every byte of the parts of all ranks but ``rank`` and rank 0, which is read for any. Raises Broken."""
    first = set(reader.read_contents(directory, manifest).entries()) if manifest.ranks > 1 else set()
    for other in range(1, manifest.ranks):
        found = reader.read_contents(directory, manifest, other)
        if missing := set(found.shared or ()) - first:
            raise Broken(f"{layout.part_contents(other)}: tensor {min(missing)!r} is not in rank 0's files")
        if other != rank:
            reader.read_files(directory, found.files)
