"""The mark that tells a session coming back from a fresh run, and the line that offers an old snapshot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.kernel.comeback import Mark, leave_mark, offer, read_mark, remove_mark


def test_a_mark_is_read_back_and_removed(tmp_path: Path) -> None:
    assert read_mark(tmp_path) is None
    leave_mark(tmp_path, Mark("s1", "step-7"))
    leave_mark(tmp_path, Mark("s2", "step-9"))
    assert read_mark(tmp_path) == Mark("s2", "step-9")
    assert len(list(tmp_path.iterdir())) == 1
    remove_mark(tmp_path)
    remove_mark(tmp_path)
    assert read_mark(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"session": 1, "snapshot": "x"}', '{"session": "s"}', "\xff\xfe"])
def test_a_broken_mark_is_no_mark(tmp_path: Path, text: str) -> None:
    (tmp_path / ".evicted.json").write_bytes(text.encode("latin-1"))
    assert read_mark(tmp_path) is None


def test_a_pipe_or_a_link_in_its_place_is_no_mark_and_is_not_written_through(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".evicted.json")
    assert read_mark(tmp_path) is None
    leave_mark(tmp_path, Mark("s1", "step-7"))
    assert read_mark(tmp_path) == Mark("s1", "step-7")
    (tmp_path / "victim").write_text("whole")
    (tmp_path / f".evicted.json.{os.getpid()}").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        leave_mark(tmp_path, Mark("s2", "step-9"))
    assert (tmp_path / "victim").read_text() == "whole"


@pytest.mark.parametrize(
    ("age_s", "text"), [(5, "5.0 s"), (720, "12 min"), (7500, "2 h"), (400_000, "5 days"), (-3, "0.0 s")]
)
def test_an_old_snapshot_is_offered_with_its_age(tmp_path: Path, age_s: float, text: str) -> None:
    snapshot = Snapshot(tmp_path, 1200, 1, 0.1, Cause.PREEMPTED, created_s=1000.0)
    assert offer(snapshot, 1000.0 + age_s) == f"snapshot of step 1200 found ({text} ago); %paddle_gpu restore uses it"
