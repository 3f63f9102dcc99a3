"""One claim, one file. Its holder keeps a lock on it: a dead process holds nothing, whoever it belonged to.

``flock`` belongs to the open file, not to a process: it passes to a child with the descriptor, and goes when the last
process that has it ends, however it ends. Others test it through a read-only descriptor, so also across users.
"""

from __future__ import annotations

import dataclasses
import fcntl
import functools
import json
import logging
import math
import os
import pwd
import re
import stat
from pathlib import Path

from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.queue import Claim

log = logging.getLogger(__name__)

SUFFIX = ".claim"
_MAX_BYTES = 64 * 1024
_BLOCK_BYTES = 4096
_MAX_LABEL = 200
_ID = re.compile(r"[0-9a-f]{32}")


def create(directory: Path, claim: Claim) -> int:
    """Write a new claim and return the locked descriptor that keeps it. The caller holds the book's lock."""
    path = directory / (claim.id + SUFFIX)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.fchmod(fd, 0o644)  # others read it whatever the umask says
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write(fd, claim)
    except OSError:
        os.close(fd)
        path.unlink(missing_ok=True)
        raise
    return fd


def write(fd: int, claim: Claim) -> None:
    """Replace the claim's text, on the same file: a rename would leave the lock behind.

    The text is filled up to whole blocks, so that a disk that is full meanwhile still takes the next one. Raises
    OSError; the claim is then the old one.
    """
    data = json.dumps(to_plain(claim)).encode()
    wanted = -(-len(data) // _BLOCK_BYTES) * _BLOCK_BYTES
    size = max(wanted, os.fstat(fd).st_size)
    os.posix_fallocate(fd, 0, size)
    os.pwrite(fd, data.ljust(size), 0)


def read_live(directory: Path) -> list[Claim]:
    """Return the claims whose holder lives, and remove the files of the dead. The caller holds the book's lock.

    Files are other people's: whatever is not a claim of ours is left out, and named in the log.
    """
    claims = []
    for path in sorted(directory.glob("*" + SUFFIX)):
        try:
            claim = _read(path)
        except (OSError, WireError, ValueError, RecursionError) as error:
            _complain(str(path), str(error))
            continue
        if claim is not None:
            claims.append(claim)
    return claims


@functools.lru_cache(maxsize=1024)
def _complain(path: str, reason: str) -> None:
    """Say it once: claims are read many times a second."""
    log.warning("The claim %r is left out: %s", path, reason)


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
    finally:
        os.close(fd)
    if claim.id != path.name.removesuffix(SUFFIX):
        raise WireError("it names another claim")
    return _believed(claim, status.st_uid)


def _believed(claim: Claim, owner: int) -> Claim:
    """Return what may be believed of another user's text: whose it is says the file system, what it shows is one line.

    Raises WireError for numbers that no request has.
    """
    if claim.gpus < 1 or not math.isfinite(claim.since_s) or not math.isfinite(claim.grace_s):
        raise WireError(f"gpus {claim.gpus}, since_s {claim.since_s} or grace_s {claim.grace_s} is out of range")
    return dataclasses.replace(claim, owner=account(owner), label=one_line(claim.label), tier=one_line(claim.tier))


def one_line(text: str) -> str:
    """Return a text that cannot steer the terminal or the page that shows it: printable, and not too long."""
    return "".join(character if character.isprintable() else "?" for character in text[:_MAX_LABEL])


@functools.lru_cache(maxsize=256)
def account(uid: int) -> str:
    """Return the name of an account, or its number: containers run under ids without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


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
