"""Save and restore a training at safe moments: what a notebook or a script writes.

from jupyter_paddle_gpu import guard

for step, batch in guard.steps(loader, epochs=5):
    ...
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.checkpoint.stacks import outwards
from jupyter_paddle_gpu.core.environment import ENV_JOB
from jupyter_paddle_gpu.core.errors import NotKept
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.kernel.drill import DrillReport, play
from jupyter_paddle_gpu.kernel.extension import load
from jupyter_paddle_gpu.kernel.runtime import Runtime, runtime
from jupyter_paddle_gpu.kernel.shadow import shadow_message
from jupyter_paddle_gpu.kernel.status import GuardStatus, look
from jupyter_paddle_gpu.kernel.telling import left_open, say
from jupyter_paddle_gpu.telemetry.ancestors import in_container, shell_above

__all__ = ["drill", "install", "keep", "restore", "save", "snapshots", "status", "steps"]


def steps(loader: Iterable[Any], epochs: int = 1) -> Iterator[tuple[int, Any]]:
    """Yield ``(step, batch)`` over all epochs; ``step`` counts from 0 over all of them.

    In a kernel that came back after an eviction, and in a script with ``install``, it restores the training first and
    goes on at the saved step, with the samples and the random numbers that the training would have had.
    """
    return runtime().steps(loader, epochs)


def keep(*names: object, **values: object) -> None:
    """Put these values into every snapshot from now on: numbers, strings, lists, dicts, arrays, tensors.

    A variable of the caller with that name and value is followed: what it holds at a snapshot is what is saved.
    Raises NotKept, with the reason, for anything else.
    """
    if names:
        name = names[0] if isinstance(names[0], str) else "history"
        raise NotKept(f"A value is kept under a name, and {names[0]!r:.40} has none", f"guard.keep({name}={name})")
    runtime().training.keep(**values)


def save() -> Snapshot:
    """Save now and return the snapshot: its path, step, nbytes, seconds and cause.

    Raises SnapshotError when there is nothing to save, StoreUnwritable when the directory refuses; earlier snapshots
    stay as they are.
    """
    return runtime().protection.save(Cause.MANUAL)


def restore(snapshot: Snapshot | Path | str | None = None, partial: bool = False) -> Snapshot:
    """Restore the newest good snapshot, or the given one (also by its step or directory name), and return it.

    ``partial`` loads the weights and the optimizer state that fit another model, says what did not, and leaves the rest
    of the training at its beginning. Raises SnapshotNotFound, SnapshotCorrupt, or SnapshotMismatch with the
    differences; nothing is half-loaded.
    """
    protection = runtime().protection
    if isinstance(snapshot, str) and not Path(snapshot).is_dir():
        snapshot = protection.store.find(snapshot)
    used, report = protection.restore(Path(snapshot) if isinstance(snapshot, str) else snapshot, partial)
    if what := left_open(report):
        say(what)
    return used


def snapshots() -> tuple[Snapshot, ...]:
    """Return the complete snapshots of this notebook or directory, newest first."""
    return runtime().protection.store.list()


def install(
    directory: str | Path | None = None, grace_s: float | None = None, every: str | float | None = None
) -> None:
    """Protect this process: SIGTERM → saved at a safe moment → exit code 143; the next start resumes.

    ``directory`` takes the snapshots (a script resumes from its newest good one, whoever left it, also after a
    training that ended well: remove the directory to begin anew); ``grace_s`` is the time between SIGTERM and SIGKILL;
    ``every`` the time between two snapshots that the training makes by itself: seconds or a text such as "10m", "auto"
    (a hundredth of the time goes to them, the default) or "off". In a notebook the extension has installed the guard:
    only the directory changes; in a worker that multiprocessing spawns, which imports the script once more, nothing
    happens. Raises PaddleGpuError outside the main thread, RequestError for a time that is none,
    StoreUnwritable for a directory that takes no snapshots.
    """
    if _imported_by_a_worker():
        return
    here = runtime()
    if every is not None:
        here.every_s = GpuRequest().changed(every=every).every_s
    if not here.protecting:
        _protect(here)
    if grace_s is not None:
        here.grace_s = grace_s
    if directory is not None:
        here.protection.use(Path(directory), always_resume=_shell() is None)
        here.protection.store.prepare()
    if _shell() is None:
        here.join_ranks()


def _protect(here: Runtime) -> None:
    if (shell := _shell()) is not None:
        load(shell)
        return
    here.protect_process()
    for warning in (shadow_message(), _unheard()):
        if warning:
            say(warning)


def _unheard() -> str:
    """Return what to do where the SIGTERM that ends this container will not come here; empty where all is well."""
    by_hand, by_run = os.isatty(0), ENV_JOB in os.environ
    if by_hand or by_run or not in_container() or (shell := shell_above()) is None:
        return ""
    return f"{shell} keeps the container's SIGTERM to itself: begin its command with exec, or nothing is saved"


def _imported_by_a_worker() -> bool:
    """Whether this is the import of a script by a worker of multiprocessing, which trains nothing of its own by it."""
    return any(
        frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__mp_main__"
        for frame in outwards(sys._getframe(1))
    )


def _shell() -> Any:
    """Return the IPython shell that this process is, if it is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def drill() -> DrillReport:
    """Play an eviction: save, read back, compare bit for bit, and say whether it fits the grace. Nothing else changes.

    Raises as ``save`` does.
    """
    return play(runtime())


def status() -> GuardStatus:
    """Return what is protected now, and what a save would take."""
    return look(runtime())
