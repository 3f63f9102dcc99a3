"""Durable writes: each file is on the disk before the next step begins, and the manifest comes last.

    mkdir DIR → write tensors (their memory is not needed any more) → fsync
              → write contents → fsync → fsync DIR, its parent and the parents that were made for it
              → write manifest beside its place → fsync → rename → fsync DIR

A kill or a power loss at any point leaves either a complete snapshot or a directory without a manifest.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import format as names
from jupyter_paddle_gpu.checkpoint.contents import Entry, TensorFile, layout
from jupyter_paddle_gpu.checkpoint.pieces import Checksums, Piece, crc32, pieces, transfer, views
from jupyter_paddle_gpu.checkpoint.state import RawTensor

# what object stores and some network mounts answer to flock, and to fsync of a directory
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.ENOTTY, errno.EBADF, errno.ENOLCK}

Progress = Callable[[int], None]  # gets the bytes written so far


def create_tensor_file(path: Path) -> int:
    """Create the tensor file and return its descriptor, locked until it is closed: others can tell a save in progress
    from what a dead process left behind. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # nobody else holds it for longer than a look
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            os.close(fd)
            raise
    return fd


def write_tensors(fd: int, tensors: Mapping[str, RawTensor], tell: Progress) -> TensorFile:
    """Fill a tensor file straight from the tensors' memory; it is durable after an fsync of ``fd``.

    One thread writes, for Linux lets no two write into the same file at once, while this one adds up the checksums.
    Raises OSError, ValueError for a tensor that has no place in such a file.
    """
    header, placed = layout(tensors)
    write_all(fd, [memoryview(header)], 0)
    written = len(header)
    tell(written)
    checksums = Checksums(placed)

    def checked() -> Iterator[Piece]:
        for piece in pieces(views(placed), len(header)):
            checksums.add(piece)
            yield piece

    for piece, _ in transfer(checked(), lambda piece: write_all(fd, [view for _, view in piece.parts], piece.offset)):
        written += piece.nbytes
        tell(written)
    return _described(header, placed, checksums)


def describe_tensors(tensors: Mapping[str, RawTensor]) -> TensorFile:
    """Return what ``write_tensors`` would write. Raises ValueError as it does."""
    header, placed = layout(tensors)
    checksums = Checksums(placed)
    for piece in pieces(views(placed), len(header)):
        checksums.add(piece)
    return _described(header, placed, checksums)


def _described(header: bytes, placed: Mapping[str, RawTensor], checksums: Checksums) -> TensorFile:
    entries = {name: Entry(tensor.dtype, tensor.shape, checksums[name]) for name, tensor in placed.items()}
    return TensorFile(len(header), crc32(header), entries)


def write_file(path: Path, data: bytes) -> None:
    """Write a new file of this user's, durable but for its name. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, [memoryview(data)], 0)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_manifest(directory: Path, data: bytes) -> None:
    """Put the manifest in its place: from here on the directory is a snapshot. Raises OSError."""
    temporary = directory / (names.MANIFEST + ".tmp")
    write_file(temporary, data)
    temporary.rename(directory / names.MANIFEST)
    sync_directory(directory)


def make_directory(directory: Path) -> None:
    """Make a directory for its owner only, with its parents, all durable. May be repeated. Raises OSError."""
    missing = []
    place = directory
    while not place.exists() and place != place.parent:
        missing.append(place)
        place = place.parent
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for made in missing:
        with contextlib.suppress(PermissionError):  # a parent that others may not list
            sync_directory(made.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable, where the file system has something to do for it. Raises OSError."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(fd)


def try_lock(fd: int) -> bool | None:
    """Lock an open file without waiting; return whether it is ours now, None where the file system has no locks
    (object stores, some network mounts)."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def write_all(fd: int, data: list[memoryview], offset: int) -> None:
    """Write from ``offset`` on, in as many calls as it takes. Raises OSError."""
    while data:
        count = os.pwritev(fd, data, offset)
        offset += count
        while data and count >= data[0].nbytes:
            count -= data.pop(0).nbytes
        if count:
            data[0] = data[0][count:]
