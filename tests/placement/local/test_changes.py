"""Whether a look at the directory's time is enough."""

from __future__ import annotations

import os
import time
from pathlib import Path

from jupyter_paddle_gpu.placement.local.changes import Changes


def settle(directory: Path, age_s: float) -> None:
    """Give the directory a time of ``age_s`` ago."""
    moment_ns = time.time_ns() - int(age_s * 1e9)
    os.utime(directory, ns=(moment_ns, moment_ns))


def test_nothing_is_read_twice_without_a_change(tmp_path: Path) -> None:
    settle(tmp_path, 5)
    changes = Changes(tmp_path)
    assert [changes.due() for _ in range(3)] == [True, False, False]
    (tmp_path / "new").touch()
    assert changes.due()


def test_a_second_change_within_a_tick_of_the_clock_is_not_missed(tmp_path: Path) -> None:
    settle(tmp_path, 0)
    same = tmp_path.stat().st_mtime_ns
    changes = Changes(tmp_path)
    assert changes.due()
    (tmp_path / "new").touch()
    os.utime(tmp_path, ns=(same, same))  # as if the clock had not ticked
    assert changes.due()
