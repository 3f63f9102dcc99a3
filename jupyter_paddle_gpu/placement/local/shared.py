"""A directory that all users of a machine write to, none of whom can remove what belongs to another."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from jupyter_paddle_gpu.core.errors import PlacementError

LOCK_PATIENCE_S = 10.0  # the lock is held for milliseconds: after this, its holder is stopped or hangs
_LOCK = "lock"


def make_shared(directory: Path) -> None:
    """Create the directory for everybody where it is not there. Raises PlacementError for one that is not safe to use.

    One that is there keeps its permissions: its owner may mean it for himself.
    """
    try:
        if not os.path.lexists(directory):
            _create(directory)
        status = directory.lstat()
    except OSError as error:
        raise PlacementError(f"{directory} cannot be used: {error.strerror}", "Name another with --book.") from None
    if stat.S_ISLNK(status.st_mode):
        raise PlacementError(f"{directory} is a symbolic link", "Name the directory itself with --book.")
    if not stat.S_ISDIR(status.st_mode):
        raise PlacementError(f"{directory} is not a directory", "Remove it, or name another with --book.")
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise PlacementError(
            f"{directory} lets everybody remove everybody's claims", f"Its owner should run: chmod 1777 {directory}."
        )
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise PlacementError(
            f"{directory} cannot be written",
            f"Its owner should run: chmod 1777 {directory}. Or name another with --book.",
        )


def _create(directory: Path) -> None:
    """Make it aside and rename it: nobody ever sees it with other permissions, or without its lock."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        _make_lock(aside)
        aside.chmod(0o1777)
        aside.rename(directory)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        if not os.path.lexists(directory):  # else somebody was faster: that one is used
            raise


def _make_lock(directory: Path) -> None:
    """Make the lock file, readable by everybody whatever the umask says, in one step."""
    aside = directory / f".{_LOCK}-{uuid.uuid4().hex}"
    fd = os.open(aside, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.fchmod(fd, 0o644)
        with contextlib.suppress(FileExistsError):
            os.link(aside, directory / _LOCK)
    finally:
        os.close(fd)
        aside.unlink()


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory's lock for a with block. Raises PlacementError when LOCK_PATIENCE_S do not suffice."""
    fd = _open_lock(directory)
    try:
        _lock(fd, directory)
        yield
    finally:
        os.close(fd)


def _open_lock(directory: Path) -> int:
    # Without O_CREAT where it exists: in a sticky directory the kernel refuses that for somebody else's file.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        try:
            return os.open(directory / _LOCK, flags)
        except FileNotFoundError:
            _make_lock(directory)
            return os.open(directory / _LOCK, flags)
    except OSError as error:
        raise PlacementError(
            f"The book of leases {directory} cannot be locked: {error.strerror}",
            "Its owner should make it and its file `lock` readable for all; or name another with --book.",
        ) from None


def _lock(fd: int, directory: Path) -> None:
    end_s, pause_s = time.monotonic() + LOCK_PATIENCE_S, 0.001
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end_s:
                raise PlacementError(
                    f"Somebody has held the lock of the book of leases {directory} for {LOCK_PATIENCE_S:g} s",
                    f"`fuser -v {directory / _LOCK}` shows the process that is stopped or hangs.",
                ) from None
            time.sleep(pause_s)
            pause_s = min(0.02, 2 * pause_s)
        else:
            return
