"""The processes above one: whose it is, and whether a shell among them keeps a container's SIGTERM to itself."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from jupyter_paddle_gpu.telemetry.processes import PROC, find

_INITS = {"systemd", "init"}  # the first process of a machine; a container's is a program of its user's
_SHELLS = {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"}


def in_container() -> bool:
    """Whether the first process that is seen from here is no machine's."""
    return _name(1) not in _INITS


def shell_above(pid: int | None = None, top: int = 1) -> str | None:
    """Return the command line of the nearest shell among the processes above ``pid`` (None: this one), up to ``top``.

    The SIGTERM that ends a container goes to its first process. A shell that waits for a command does not pass it on:
    as the first process it does not even end by it. ``exec`` puts the command in the shell's place. None: no shell.
    """
    for ancestor in above(os.getpid() if pid is None else pid, top):
        if _name(ancestor) in _SHELLS:
            return _command(ancestor)
    return None


def above(pid: int, top: int = 1, proc: Path = PROC) -> Iterator[int]:
    """Yield its parent, that one's parent, up to ``top`` or as far as ``proc`` shows them."""
    while pid != top and (process := find(pid, proc)) is not None and process.parent:
        pid = process.parent
        yield pid


def _name(pid: int) -> str:
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _command(pid: int) -> str:
    try:
        parts = (PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return _name(pid)
    return shlex.join(part.decode(errors="replace") for part in parts)
