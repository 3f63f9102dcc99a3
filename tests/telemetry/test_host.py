"""CPU and memory as control groups of both versions say it, from files as Linux lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jupyter_paddle_gpu.telemetry.host import HostReader

GIB = 1 << 30
MEMINFO = f"MemTotal: {64 * GIB // 1024} kB\nMemFree: 1 kB\nMemAvailable: {60 * GIB // 1024} kB\n"
V2 = {
    "proc/self/cgroup": "0::/pod/c\n", "groups/cgroup.controllers": "cpu memory\n",
    "groups/pod/memory.max": f"{16 * GIB}\n", "groups/pod/memory.current": f"{6 * GIB}\n",
    "groups/pod/memory.stat": f"anon 5\ninactive_file {GIB}\n", "groups/pod/c/memory.max": "max\n",
    "groups/pod/c/cpu.max": "50000 100000\n", "groups/pod/c/cpu.stat": "usage_usec 2000000\nuser_usec 1\n",
}  # fmt: skip
V1 = {
    "proc/self/cgroup": "4:memory:/pod/c\n2:cpu:/pod\n1:cpuacct:/pod\n0::/\n",
    "groups/memory/pod/c/memory.limit_in_bytes": f"{16 * GIB}\n",
    "groups/memory/pod/c/memory.usage_in_bytes": f"{6 * GIB}\n",
    "groups/memory/pod/c/memory.stat": f"total_inactive_file {GIB}\n",
    "groups/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "groups/cpu/pod/cpu.cfs_quota_us": "50000\n", "groups/cpu/pod/cpu.cfs_period_us": "100000\n",
    "groups/cpuacct/pod/cpuacct.usage": "2000000000\n",
}  # fmt: skip


def lay_out(root: Path, files: Mapping[str, str]) -> HostReader:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return HostReader(root, root / "proc", root / "groups")


@pytest.mark.parametrize("files", [V2, V1], ids=["version 2", "version 1"])
def test_a_container_has_its_own_limits(tmp_path: Path, files: Mapping[str, str]) -> None:
    reader = lay_out(tmp_path, files)
    first = reader.read(10)
    assert (first.memory_used_bytes, first.memory_limit_bytes) == (5 * GIB, 16 * GIB)
    assert first.cpu_limit_cores == 0.5
    assert first.cpu_percent is None
    assert "second reading" in first.unknown["cpu_percent"]
    later = {name: text.replace("2000000", "2500000", 1) for name, text in files.items() if "cpu" in name}
    assert lay_out(tmp_path, {**files, **later}).read(11).cpu_percent is None  # another reader begins anew
    sample = reader.read(11)
    assert sample.cpu_percent == pytest.approx(50)
    assert sample.unknown == {}


def test_a_machine_without_groups_is_told_as_it_is(tmp_path: Path) -> None:
    reader = lay_out(tmp_path, {"proc/stat": "cpu  100 0 100 9 9 0 0 0\n"})
    sample = reader.read(0)
    assert (sample.memory_used_bytes, sample.memory_limit_bytes) == (4 * GIB, 64 * GIB)
    lay_out(tmp_path, {"proc/stat": "cpu  150 0 150 9 9 0 0 0\n"})
    assert reader.read(1).cpu_percent == pytest.approx(100)  # Linux counts in hundredths of a second


def test_what_linux_does_not_tell_is_unknown_with_the_reason(tmp_path: Path) -> None:
    sample = HostReader(None, tmp_path / "none", tmp_path / "none").read(0)
    assert (sample.memory_used_bytes, sample.memory_limit_bytes, sample.cpu_percent) == (None, None, None)
    assert (sample.disk_free_bytes, sample.disk_total_bytes) == (None, None)
    assert "where snapshots lie" in sample.unknown["disk_free_bytes"]
    assert "meminfo" in sample.unknown["memory_used_bytes"]


def test_this_machine_answers() -> None:
    sample = HostReader(Path.home()).read(0)
    assert sample.disk_free_bytes is not None
    assert sample.memory_used_bytes is not None
    assert sample.memory_limit_bytes is not None
    assert 0 < sample.memory_used_bytes < sample.memory_limit_bytes
