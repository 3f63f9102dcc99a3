"""Durable writes: each file is on the disk before the next step begins, and the manifest comes last.

    mkdir DIR → write tensors → fsync → fsync DIR, its parent and the parents that were made for it
              → write manifest beside its place → fsync → rename → fsync DIR

A kill or a power loss at any point leaves either a complete snapshot or a directory without a manifest.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.format import TensorEntry
from jupyter_paddle_gpu.checkpoint.state import RawTensor

CHUNK_BYTES = 8 * 2**20  # checksum and write alternate in pieces that stay in the processor's cache

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


def write_tensors(
    fd: int, tensors: Mapping[str, RawTensor], progress: Progress | None = None
) -> tuple[bytes, dict[str, TensorEntry]]:
    """Fill the tensor file straight from the tensors' memory and make it durable.

    Returns its header and the place of each tensor. Raises OSError.
    """
    header, places = layout.layout(tensors)
    _write_all(fd, memoryview(header), 0)
    entries, written = {}, len(header)
    if progress:
        progress(written)
    for name, (begin, end) in places.items():
        tensor, crc = tensors[name], 0
        data = tensor.data.cast("B") if tensor.nbytes else memoryview(b"")
        for start in range(0, len(data), CHUNK_BYTES):
            chunk = data[start : start + CHUNK_BYTES]
            crc = zlib.crc32(chunk, crc)
            _write_all(fd, chunk, begin + start)
            written += len(chunk)
            if progress:
                progress(written)
        entries[name] = TensorEntry(tensor.dtype, tensor.shape, begin, end, crc)
    os.fsync(fd)
    return header, entries


def write_manifest(directory: Path, data: bytes) -> None:
    """Put the manifest in its place: from here on the directory is a snapshot. Raises OSError."""
    temporary = directory / (layout.MANIFEST + ".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, memoryview(data), 0)
        os.fsync(fd)
    finally:
        os.close(fd)
    temporary.rename(directory / layout.MANIFEST)
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


def _write_all(fd: int, data: memoryview, offset: int) -> None:
    while data:
        count = os.pwrite(fd, data, offset)
        data, offset = data[count:], offset + count
