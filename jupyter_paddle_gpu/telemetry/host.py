"""CPU, memory and disk of the machine, or of the container where that has less: control groups of version 1 and 2."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from jupyter_paddle_gpu.core.telemetry import HostSample
from jupyter_paddle_gpu.telemetry.disk import DiskReader

T = TypeVar("T")


@dataclass(frozen=True)
class _Files:
    """Where a version of control groups says what; times in parts of a second, ``per_s`` of them."""

    memory_used: str
    memory_limit: str
    memory_cache: str  # key in memory.stat of what the kernel can take back at once
    cpu_used: Callable[[str], int]
    cpu_file: str
    per_s: float


_V2 = _Files(
    "memory.current", "memory.max", "inactive_file", lambda text: int(_pairs(text)["usage_usec"]), "cpu.stat", 1e6
)
_V1 = _Files("memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file", int, "cpuacct.usage", 1e9)


class HostReader:
    """Reads the host again and again; the CPU's use is that since the last reading, so the first does not know it.

    ``disk`` is a path on the disk that takes the snapshots (None: not known); ``proc`` and ``groups`` are where Linux
    shows processes and control groups.
    """

    def __init__(
        self, disk: Path | None = None, proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
    ) -> None:
        self._disk = None if disk is None else DiskReader(disk)
        self._proc = proc
        self._groups = groups
        self._last_cpu: tuple[float, float] | None = None  # time and seconds of use

    def read(self, at_s: float) -> HostSample:
        """Return what is used and what is there; ``at_s`` is a clock that only grows. Raises nothing."""
        unknown: dict[str, str] = {}

        def ask(names: tuple[str, ...], question: Callable[[], T]) -> T | None:
            try:
                return question()
            except (OSError, ValueError, KeyError, IndexError) as error:
                unknown.update(dict.fromkeys(names, f"Linux does not tell it here: {error}"))
                return None

        cores = ask(("cpu_limit_cores",), self._cores)
        percent = ask(("cpu_percent",), lambda: self._cpu_percent(at_s))
        memory = ask(("memory_used_bytes", "memory_limit_bytes"), self._memory)
        if percent is None:
            unknown.setdefault("cpu_percent", "it is told from the second reading on")
        used_bytes, limit_bytes = memory or (None, None)
        free_bytes, total_bytes = self._ask_disk(unknown)
        return HostSample(percent, cores, used_bytes, limit_bytes, free_bytes, total_bytes, unknown)

    def _ask_disk(self, unknown: dict[str, str]) -> tuple[int | None, int | None]:
        found, reason = (None, "nobody has said where snapshots lie") if self._disk is None else self._disk.read()
        if found is None:
            unknown.update(dict.fromkeys(("disk_free_bytes", "disk_total_bytes"), reason))
        return found or (None, None)

    def _memory(self) -> tuple[int, int]:
        """Used and limit: of the smallest group around us that has a limit, else of the machine."""
        machine = _pairs((self._proc / "meminfo").read_text().replace(":", " ").replace(" kB", ""))
        total_bytes = int(machine["MemTotal"]) * 1024
        smallest = (total_bytes - int(machine["MemAvailable"]) * 1024, total_bytes)
        for group, files in self._groups_of("memory"):
            limit = _text(group / files.memory_limit)
            if limit in (None, "max") or int(limit or 0) >= smallest[1]:
                continue
            cache_bytes = int(_pairs((group / "memory.stat").read_text()).get(files.memory_cache, 0))
            smallest = (max(0, int((group / files.memory_used).read_text()) - cache_bytes), int(limit or 0))
        return smallest

    def _cores(self) -> float:
        cores = float(os.cpu_count() or 1)
        for group, files in self._groups_of("cpu"):
            if files is _V2:
                quota, period = (_text(group / "cpu.max") or "max 100000").split()
            else:
                quota = _text(group / "cpu.cfs_quota_us") or "-1"
                period = _text(group / "cpu.cfs_period_us") or "100000"
            if quota not in ("max", "-1"):
                cores = min(cores, int(quota) / int(period))
        return cores

    def _cpu_percent(self, at_s: float) -> float | None:
        used_s = self._cpu_used_s()
        last, self._last_cpu = self._last_cpu, (at_s, used_s)
        if last is None or at_s <= last[0]:
            return None
        return max(0.0, 100 * (used_s - last[1]) / (at_s - last[0]))

    def _cpu_used_s(self) -> float:
        """Of the outermost group that is shown: all of a container, or all of the machine."""
        told = [(_text(group / files.cpu_file), files) for group, files in self._groups_of("cpuacct")]
        for text, files in reversed(told):
            if text is not None:
                return files.cpu_used(text) / files.per_s
        user, nice, system, _idle, _wait, irq, soft_irq = (
            int(ticks) for ticks in (self._proc / "stat").read_text().split("\n")[0].split()[1:8]
        )
        return (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK")

    def _groups_of(self, controller: str) -> Iterator[tuple[Path, _Files]]:
        """Our control group and those around it, the innermost first."""
        for line in (_text(self._proc / "self" / "cgroup") or "").splitlines():
            _number, controllers, inside = line.split(":", 2)
            root = self._groups / controllers if controllers else self._groups
            if controllers and controller not in controllers.split(","):
                continue
            if not controllers and not (root / "cgroup.controllers").exists():
                continue  # version 1 rules here, this one is for systemd
            group = root / inside.lstrip("/")
            files = _V1 if controllers else _V2
            yield from ((one, files) for one in (group, *group.parents) if one.is_relative_to(root) and one.is_dir())


def _text(path: Path) -> str | None:
    """Return what a file says, or None where there is none."""
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _pairs(text: str) -> dict[str, str]:
    return dict(line.split()[:2] for line in text.splitlines() if len(line.split()) >= 2)
