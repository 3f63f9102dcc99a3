"""Reading a snapshot: only plain files of its own directory, every byte checked before it is handed out."""

from __future__ import annotations

import mmap
import os
import stat
import zlib
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint.format import Broken, Manifest
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State


def read_manifest(directory: Path) -> Manifest:
    """Return the verified manifest. Raises FileNotFoundError where there is none, Broken for any fault."""
    fd = _open_plain(directory / layout.MANIFEST)
    try:
        size = os.fstat(fd).st_size
        if size > layout.MAX_MANIFEST_BYTES:
            raise Broken(f"{layout.MANIFEST}: {size} bytes are too many for a manifest")
        data = _read(fd, size)
    finally:
        os.close(fd)
    try:
        return layout.decode(data)
    except Broken as error:
        raise Broken(f"{layout.MANIFEST}: {error}") from None


def read_state(directory: Path, manifest: Manifest) -> State:
    """Return the state, its tensors being views of the mapped file. Raises Broken that names file and fault."""
    try:
        data = _map(directory / layout.TENSORS, manifest.nbytes)
    except FileNotFoundError:
        raise Broken(f"{layout.TENSORS} is missing") from None
    if zlib.crc32(data[: manifest.header_nbytes]) != manifest.header_crc32:
        raise Broken(f"{layout.TENSORS}: the checksum of its header does not match")
    tensors = {}
    for name, entry in manifest.tensors.items():
        view = data[entry.begin : entry.end]
        if zlib.crc32(view) != entry.crc32:
            raise Broken(f"{layout.TENSORS}: the checksum of tensor {name!r} does not match")
        tensors[name] = RawTensor(entry.dtype, entry.shape, view)
    return State(tensors, manifest.structure)


def has_tensor_file(directory: Path, nbytes: int) -> bool:
    """Whether the tensor file is there in its full size: a look, no check of its bytes."""
    try:
        status = (directory / layout.TENSORS).lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == nbytes


def _read(fd: int, size: int) -> bytes:
    try:
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(size)
    except OSError as error:
        raise Broken(f"{layout.MANIFEST} cannot be read: {error.strerror}") from None


def _map(path: Path, nbytes: int) -> memoryview:
    fd = _open_plain(path)
    try:
        size = os.fstat(fd).st_size
        if size != nbytes:
            raise Broken(f"{path.name} has {size} bytes instead of {nbytes}")
        return memoryview(mmap.mmap(fd, nbytes, access=mmap.ACCESS_READ))
    except OSError as error:
        raise Broken(f"{path.name} cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)


def _open_plain(path: Path) -> int:
    """Open a file, but no link, pipe or device: a snapshot directory may have been shared with others."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Broken(f"{path.name} is not a plain file that can be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Broken(f"{path.name} is not a plain file")
    return fd
