"""Whose memory a GPU's is: that of the session's own processes, or of others."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.telemetry.ancestors import above
from jupyter_paddle_gpu.telemetry.processes import PROC

_FIRST_NAMESPACE = "pid:[4026531836]"  # of the machine itself: PROC_PID_INIT_INO in Linux
OWN, OTHERS = "memory_own_bytes", "memory_others_bytes"

HIDDEN = "the driver does not tell what each process holds"
FOREIGN = "the driver numbers processes as the machine does, this container in another way"


class Tenants:
    """Tells this process and its descendants from all others; ``proc`` is where Linux shows processes."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._sees_all = _sees_all(proc)

    def shares(self, processes: Collection[Any]) -> tuple[dict[str, int], dict[str, str]]:
        """Return the fields that are known of a GPU with these processes of NVML, and a reason for each that is not.

        In a container that numbers processes in its own way none of ours may be found: then nothing is known.
        """
        return shares(processes, self._is_ours, self._sees_all)

    def _is_ours(self, pid: int) -> bool:
        own = os.getpid()
        return pid == own or own in above(pid, own, self._proc)


def shares(
    processes: Collection[Any], is_ours: Callable[[int], bool], sees_all: bool
) -> tuple[dict[str, int], dict[str, str]]:
    """See Tenants.shares; ``sees_all``: our numbers of processes are those of the machine."""
    if any(process.usedGpuMemory is None for process in processes):
        return {}, {OWN: HIDDEN, OTHERS: HIDDEN}
    mine = [int(process.usedGpuMemory) for process in processes if is_ours(process.pid)]
    if processes and not mine and not sees_all:
        return {}, {OWN: FOREIGN, OTHERS: FOREIGN}
    return {OWN: sum(mine), OTHERS: sum(int(process.usedGpuMemory) for process in processes) - sum(mine)}, {}


def _sees_all(proc: Path) -> bool:
    try:
        return str((proc / "self" / "ns" / "pid").readlink()) == _FIRST_NAMESPACE
    except OSError:
        return False
