"""One claim, one file. Its holder keeps a lock on it: a dead process holds nothing, whoever it belonged to.

``flock`` belongs to the open file, not to a process: it passes to a child with the descriptor, and goes when the last
process that has it ends, however it ends. Others test it through a read-only descriptor, so also across users.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import stat
from pathlib import Path

from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.queue import Claim

log = logging.getLogger(__name__)

SUFFIX = ".claim"
_MAX_BYTES = 64 * 1024
_ID = re.compile(r"[0-9a-f]{32}")


def create(directory: Path, claim: Claim) -> int:
    """Write a new claim and return the locked descriptor that keeps it. The caller holds the book's lock."""
    path = directory / (claim.id + SUFFIX)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    os.fchmod(fd, 0o644)  # others read it whatever the umask says
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    write(fd, claim)
    return fd


def write(fd: int, claim: Claim) -> None:
    """Replace the claim's text, on the same file: a rename would leave the lock behind."""
    data = json.dumps(to_plain(claim)).encode()
    os.ftruncate(fd, 0)
    os.pwrite(fd, data, 0)


def read_live(directory: Path) -> list[Claim]:
    """Return the claims whose holder lives, and remove the files of the dead. The caller holds the book's lock.

    Files are other people's: whatever is not a claim of ours is left out, and named in the log.
    """
    claims = []
    for path in sorted(directory.glob("*" + SUFFIX)):
        try:
            claim = _read(path)
        except (OSError, WireError, ValueError) as error:
            log.warning("The claim %s is left out: %s", path.name, error)
            continue
        if claim is not None:
            claims.append(claim)
    return claims


def _read(path: Path) -> Claim | None:
    """Return the claim of a file; None when its holder is dead."""
    if not _ID.fullmatch(path.name.removesuffix(SUFFIX)):
        raise WireError("its name is not that of a claim")
    try:
        # not blocking: another user may have put a pipe here
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None  # withdrawn a moment ago
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise WireError("it is not a file")
        if _is_dead(fd):
            _remove_dead(path, status.st_uid)
            return None
        claim = from_plain(Claim, json.loads(os.pread(fd, _MAX_BYTES, 0)))
        if claim.id != path.name.removesuffix(SUFFIX):
            raise WireError("it names another claim")
        return claim
    finally:
        os.close(fd)


def _is_dead(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_dead(path: Path, owner: int) -> None:
    """Another user's file stays where the directory is sticky: its owner, or root, removes it."""
    if os.geteuid() in (0, owner):
        path.unlink(missing_ok=True)
