"""The command line on a machine of a user who speaks Chinese."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.english import english
from tests.server.conftest import Machine, machine, runtime

__all__ = ["machine", "runtime"]


@pytest.mark.parametrize(
    "line",
    [
        "ps",
        "doctor",
        "snapshots",
        "snapshots --of nowhere",
        "run",
        "run --gpus 9 -- true",
        "run --tier vip -- true",
    ],
)
def test_what_the_commands_print_is_chinese(line: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PADDLE_GPU_LANGUAGE", "zh")
    ticket = machine.file("service")
    command = [sys.executable, "-m", "jupyter_paddle_gpu.admin.app", *line.split()]
    done = subprocess.run(command, cwd=machine.root, capture_output=True, text=True, timeout=90, check=False)
    ticket.release()
    said = done.stdout + done.stderr
    assert english(said) == []
    assert re.search("[\u4e00-\u9fff]", said), said
