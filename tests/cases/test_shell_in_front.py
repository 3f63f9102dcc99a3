"""A shell as the container's command keeps SIGTERM to itself: who starts a training so is told, with the command."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_paddle_gpu.core.wire import EXIT_EVICTED

SCRIPT = """
import time
from jupyter_paddle_gpu import guard
guard.install(directory="backup", grace_s=3)
guard.keep(best=0.5)
print("here", flush=True)
time.sleep(60)
"""
# A container as far as processes go: the first process in it is what is asked for, and sees no other.
CONTAINER = [
    "unshare",
    *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]),
    "--pid",
    "--fork",
    "--mount-proc",
]


@contextlib.contextmanager
def container(place: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command as the first process, until its training says ``here``."""
    if subprocess.run([*CONTAINER, "true"], capture_output=True).returncode:
        pytest.skip("this machine makes no PID namespaces for this user: run as root, or allow user namespaces")
    (place / "train.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [*CONTAINER, *command],
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "here\n" in iter(process.stdout.readline, "")
        yield process
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children():
                child.kill()  # the first process: all others of its namespace go with it
        process.communicate()


def end_of(process: subprocess.Popen[str]) -> psutil.Process:
    """Send the first process the SIGTERM that ends a container, and return it."""
    (first,) = psutil.Process(process.pid).children()
    first.send_signal(signal.SIGTERM)
    return first


def test_a_shell_as_the_first_process_is_named_for_it_never_passes_sigterm_on(tmp_path: Path) -> None:
    with container(tmp_path, "sh", "-c", f"{sys.executable} train.py; echo done") as process:
        first = end_of(process)
        with pytest.raises(psutil.TimeoutExpired):  # the fact that the warning is about
            first.wait(1)
        assert not list((tmp_path / "backup").glob("*/manifest.json"))
        first.kill()
        assert process.stderr is not None
        told = process.stderr.read()
    assert f"sh -c '{sys.executable} train.py; echo done' keeps the container's SIGTERM to itself" in told
    assert "begin its command with exec" in told


def test_after_exec_the_training_hears_it_and_nothing_is_said(tmp_path: Path) -> None:
    with container(tmp_path, "sh", "-c", f"exec {sys.executable} train.py") as process:
        end_of(process)
        assert process.wait(20) == EXIT_EVICTED
        assert process.stderr is not None
        told = process.stderr.read()
    assert "keeps" not in told
    assert list((tmp_path / "backup").glob("*/manifest.json"))
