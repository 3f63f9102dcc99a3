"""Programs of the cluster: started with a log and a pid file in the state's folder, ended by that pid."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.cluster.places import ClusterError

_STARTED: list[subprocess.Popen[bytes]] = []  # they may outlive this program; Python warns of one that it forgets


def start(folder: Path, name: str, command: list[str | Path]) -> None:
    """Start it in this folder; its output is ``name.log`` there, its process ``name.pid``."""
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    _STARTED.append(process)
    (folder / f"{name}.pid").write_text(str(process.pid))


def end(pid_file: Path, number: signal.Signals = signal.SIGTERM) -> None:
    """Send it this signal where it lives; may be repeated."""
    if lives(pid_file):
        with suppress(ProcessLookupError):
            os.kill(int(pid_file.read_text()), number)
    pid_file.unlink(missing_ok=True)


def lives(pid_file: Path) -> bool:
    """Whether the process that was started under this name is there."""
    try:
        command = Path(f"/proc/{int(pid_file.read_text())}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return pid_file.stem.encode() in command.split(b"\0")


def succeeds(*command: str | Path) -> bool:
    """Whether the command ends with 0."""
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def wait_until(what: str, holds: Callable[[], bool], log: Path, limit_s: float = 60) -> None:
    """Wait until it holds; raises ClusterError with the end of this log after the limit."""
    deadline_s = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline_s:
            tail = log.read_text(errors="replace")[-1500:] if log.exists() else "(nothing)"
            raise ClusterError(f"Gave up after {limit_s:.0f} s: {what}. The end of {log}:\n{tail}")
        time.sleep(0.2)
