"""The disk of the snapshots, also one that does not answer."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from jupyter_paddle_gpu.telemetry.disk import SILENT, DiskReader


def test_the_disk_of_a_directory_that_will_be_made(tmp_path: Path) -> None:
    found, reason = DiskReader(tmp_path / "not" / "yet").read()
    assert reason == ""
    assert found is not None
    assert 0 < found[0] <= found[1]


def test_a_disk_that_does_not_answer_holds_nobody_up_and_is_seen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, statvfs = threading.Event(), os.statvfs

    def hangs(path: Path) -> os.statvfs_result:  # as a network disk without its server does
        answers.wait()
        return statvfs(path)

    monkeypatch.setattr(os, "statvfs", hangs)
    reader = DiskReader(tmp_path)
    assert [reader.read() for _ in range(2)] == [(None, SILENT)] * 2
    assert sum(thread.name == "paddle-gpu-disk" for thread in threading.enumerate()) == 1
    answers.set()
    while (found := reader.read()) == (None, SILENT):
        pass
    assert found[0] is not None


def test_a_disk_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path) -> os.statvfs_result:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(os, "statvfs", fails)
    found, reason = DiskReader(tmp_path).read()
    assert found is None
    assert "Stale file handle" in reason
