"""Reading a snapshot: only plain files of its own directory, every byte checked before it is handed out."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import contents
from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.contents import Contents, TensorFile
from jupyter_paddle_gpu.checkpoint.format import Broken, Manifest
from jupyter_paddle_gpu.checkpoint.pieces import Checksums, Piece, crc32, pieces, transfer, views
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State

_PIECE_BYTES = 2 * 2**20  # a large page of memory, and no more than a processor's cache holds
_LANES = 2  # threads that read: a disk that is far away, or many, has more than one answer under way

Progress = Callable[[int], None]  # gets the bytes read so far


def read_manifest(directory: Path) -> Manifest:
    """Return the verified manifest. Raises FileNotFoundError where there is none, Broken for any fault."""
    with _named(layout.MANIFEST):
        return layout.decode(_read_whole(directory / layout.MANIFEST, layout.MAX_MANIFEST_BYTES))


def read_contents(directory: Path, manifest: Manifest, rank: int = 0) -> Contents:
    """Return what the tensor files of a rank hold, verified. Raises Broken that names the fault."""
    name = layout.part_contents(rank) if rank else layout.CONTENTS
    expected = (manifest.files[name], manifest.parts[rank - 1] if rank else manifest.contents_crc32)
    data = read_checked(directory / name, *expected)
    with _named(name):
        return contents.decode(data, manifest.files, rank)


def read_checked(path: Path, nbytes: int, crc: int) -> bytes:
    """Return a file of which size and CRC-32 are known. Raises Broken that names the file."""
    with _named(path.name):
        try:
            data = _read_whole(path, contents.MAX_BYTES)
        except FileNotFoundError:
            raise Broken("it is missing") from None
        if (len(data), crc32(data)) != (nbytes, crc):
            raise Broken("its checksum does not match, or it is cut off")
        return data


def read_state(directory: Path, manifest: Manifest, progress: Progress | None = None, rank: int = 0) -> State:
    """Return a rank's state in memory of its own, every byte checked. Raises Broken that names file and fault."""
    first = read_contents(directory, manifest)
    found = read_contents(directory, manifest, rank) if rank else first
    tensors = read_files(directory, {**first.files, **found.files}, progress)
    if rank:
        own = found.files[layout.part_tensors(rank)].tensors
        if missing := set(found.shared or ()) - set(first.entries()):
            raise Broken(f"{layout.part_contents(rank)}: tensor {min(missing)!r} is not in rank 0's files")
        tensors = {name: tensors[name] for name in (*own, *(found.shared or ()))}
    frozen = first.files[layout.FROZEN].tensors if layout.FROZEN in first.files else {}
    return State(tensors, found.structure, frozenset(name for name in frozen if name in tensors))


def read_files(
    directory: Path, files: Mapping[str, TensorFile], progress: Progress | None = None
) -> dict[str, RawTensor]:
    """Return the tensors of these files, every byte checked; of two with one name that of the later file."""
    tensors: dict[str, RawTensor] = {}
    done = 0
    for name, file in files.items():
        tell = _from(done, progress)
        with _named(name):
            tensors.update(_read_tensor_file(directory / name, file, tell))
        done += file.nbytes
    return tensors


def _from(done: int, progress: Progress | None) -> Progress:
    return (lambda read: None) if progress is None else (lambda read: progress(done + read))


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Put the file's name before what is broken."""
    try:
        yield
    except Broken as error:
        raise Broken(f"{name}: {error}") from None


def _read_tensor_file(path: Path, file: TensorFile, tell: Progress) -> dict[str, RawTensor]:
    try:
        fd = _open_plain(path)
    except FileNotFoundError:
        raise Broken("it is missing") from None
    try:
        if (size := os.fstat(fd).st_size) != file.nbytes:
            raise Broken(f"it has {size} bytes instead of {file.nbytes}")
        return _read_tensors(fd, file, tell)
    except OSError as error:
        raise Broken(f"it cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)


def _read_tensors(fd: int, file: TensorFile, tell: Progress) -> dict[str, RawTensor]:
    data, end = _memory(file.nbytes), file.header
    _fill(fd, [data[:end]], 0)
    if crc32(data[:end]) != file.header_crc32:
        raise Broken("the checksum of its header does not match")
    tensors = {}
    for name, entry in file.tensors.items():
        begin, end = end, end + entry.nbytes
        tensors[name] = RawTensor(entry.dtype, entry.shape, data[begin:end])
    checksums = Checksums(tensors)
    parts = pieces(views(tensors), file.header, _PIECE_BYTES)
    for piece, crcs in transfer(parts, partial(_read_piece, fd), _LANES):
        checksums.join(piece, crcs)
        tell(piece.offset + piece.nbytes)
    for name, entry in file.tensors.items():
        if checksums[name] != entry.crc32:
            raise Broken(f"the checksum of tensor {name!r} does not match")
    return {name: RawTensor(raw.dtype, raw.shape, raw.data.toreadonly()) for name, raw in tensors.items()}


def _read_piece(fd: int, piece: Piece) -> list[int]:
    """Fill a piece, and return the checksums of its parts: they are still in this processor's cache."""
    _fill(fd, [view for _, view in piece.parts], piece.offset)
    return [crc32(view) for _, view in piece.parts]


def _memory(nbytes: int) -> memoryview:
    """Return fresh memory, in large pages where there are some: small ones cost as much as the reading.

    Not a mapping of the file: a disk that fails, or a file that is cut off meanwhile, would kill the process.
    """
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def _fill(fd: int, data: list[memoryview], offset: int) -> None:
    """Read until ``data`` is full. Raises Broken where the file ends before."""
    while data := [view for view in data if view.nbytes]:
        count = os.preadv(fd, data, offset)
        if not count:
            raise Broken(f"it ends at byte {offset}")
        offset += count
        while data and count >= data[0].nbytes:
            count -= data.pop(0).nbytes
        if data:
            data[0] = data[0][count:]


def has_files(directory: Path, manifest: Manifest) -> bool:
    """Whether the files are there in their full sizes: a look, no check of their bytes."""
    try:
        found = {name: (directory / name).lstat() for name in manifest.files}
    except OSError:
        return False
    return all(stat.S_ISREG(found[name].st_mode) and found[name].st_size == manifest.files[name] for name in found)


def files_on_disk(directory: Path) -> dict[object, int]:
    """Return the bytes of each file of a snapshot, by the file's identity on its disk."""
    found: dict[object, int] = {}
    parts: list[str] = []
    with contextlib.suppress(OSError):  # another process is removing it
        parts = [path.name for path in directory.glob("rank-*.*")]
    for name in (layout.MANIFEST, layout.CONTENTS, *layout.TENSOR_FILES, *parts):
        with contextlib.suppress(OSError):
            status = (directory / name).lstat()
            found[status.st_dev, status.st_ino] = status.st_size
    return found


def _read_whole(path: Path, most: int) -> bytes:
    fd = _open_plain(path)
    try:
        if (size := os.fstat(fd).st_size) > most:
            raise Broken(f"{size} bytes are too many for it")
        return _read(fd, size)
    finally:
        os.close(fd)


def _read(fd: int, size: int) -> bytes:
    try:
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(size)
    except OSError as error:
        raise Broken(f"it cannot be read: {error.strerror}") from None


def _open_plain(path: Path) -> int:
    """Open a file, but no link, pipe or device: a snapshot directory may have been shared with others."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Broken(f"it is not a plain file that can be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Broken("it is not a plain file")
    return fd
