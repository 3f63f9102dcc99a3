"""The demo, whole: the first notebook in a real server, an eviction in the middle, the picture it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import nbformat
import pexpect  # type: ignore[import-untyped]
import pytest

from jupyter_paddle_gpu.admin.demo import lab, notebook
from jupyter_paddle_gpu.admin.demo.notebook import NAMES
from tests.server.conftest import Machine, eventually, machine, runtime

__all__ = ["machine", "runtime"]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("language", "last_word", "cause"),
    [
        ("en", "saved, waiting for the CPU slot, position 1", "preempted"),
        ("zh", "步已保存，正在等待 CPU 名额，排第 1 位", "被抢占"),
    ],
)
def test_the_notebook_is_evicted_comes_back_and_every_loss_is_equal(
    language: str, last_word: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PADDLE_GPU_LANGUAGE", language)
    command = [sys.executable, "-m", "jupyter_paddle_gpu", "demo", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert last_word in done.stdout
    assert "435 losses with 1 eviction(s), 435 without" in done.stdout
    assert "every loss is equal, bit for bit" in done.stdout
    assert (tmp_path / "out" / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "out" / "loss.svg").read_bytes()
    executed = nbformat.read(tmp_path / "out" / NAMES[language], as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types
    cells = {cell.id: cell for cell in executed.cells if cell.cell_type == "code"}
    outputs = [output for cell in cells.values() for output in cell.outputs]
    assert [output for output in outputs if output.output_type == "error"] == []
    assert any("image/png" in output.get("data", {}) for output in outputs), "the picture is not in the notebook"
    assert any(cause in str(output.get("data", {}).get("text/plain")) for output in outputs)


def test_trying_it_by_hand_keeps_what_a_person_has_changed_and_leaves_what_the_demo_executed(tmp_path: Path) -> None:
    executed = notebook.copy_to(tmp_path)
    executed.write_text("executed")
    root = tmp_path / "lab"
    root.mkdir()
    mine = lab.own_copy(root)
    assert notebook.read(mine).cells, "a fresh one"
    mine.write_text("changed")
    assert lab.own_copy(root).read_text() == "changed"
    assert executed.read_text() == "executed"


def _answered(request: urllib.request.Request) -> bool:
    with suppress(urllib.error.URLError):
        urllib.request.urlopen(request).close()
        return True
    return False


def test_ctrl_c_ends_what_was_tried_by_hand_and_gives_everything_back(tmp_path: Path, machine: Machine) -> None:
    command = ["-m", "jupyter_paddle_gpu", "demo", "--lab", "--out", str(tmp_path / "out")]
    person = pexpect.spawn(sys.executable, command, timeout=60, encoding="utf-8")
    try:
        person.expect(r"(http://127\.0\.0\.1:\d+)/lab/tree/01-train-evict-return\.ipynb\?token=(\w+)")
        address, token = person.match.groups()
        body = json.dumps({"name": "paddle-gpu"}).encode()
        request = urllib.request.Request(f"{address}/api/kernels?token={token}", body)
        eventually(lambda: _answered(request))  # it says where it listens a moment before it does
        assert machine.holders(), "the kernel holds nothing"
        person.sendintr()
        person.expect("Shut down this Jupyter server")
        time.sleep(1.0)  # people take longer to answer than subprocess waits for a child that is interrupted
        person.sendline("y")
        person.expect(pexpect.EOF)
    finally:
        person.close(force=True)
    assert not machine.holders()


def test_the_notebooks_of_all_languages_run_the_same(tmp_path: Path) -> None:
    english, chinese = (notebook.read(notebook.NOTEBOOKS / name).cells for name in NAMES.values())
    assert [cell.source for cell in english if cell.cell_type == "code"] == [
        cell.source for cell in chinese if cell.cell_type == "code"
    ]
    assert [cell.id for cell in english] == [cell.id for cell in chinese]


EVICTED_BEFORE_IT_TRAINED = """
from jupyter_paddle_gpu import guard
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.kernel.runtime import runtime
guard.install("backup")
history = [2.0, 1.0]
guard.keep(history=history)
runtime().protection.save(Cause.PREEMPTED)
"""


def test_its_picture_is_drawn_after_an_eviction_that_came_before_the_training(tmp_path: Path) -> None:
    cells = [cell.source for cell in notebook.read(notebook.NOTEBOOKS / NAMES["en"]).cells]
    (picture,) = (source for source in cells if "matplotlib" in source)
    (tmp_path / "picture.py").write_text(EVICTED_BEFORE_IT_TRAINED + picture)
    command = [sys.executable, "picture.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "agg"}
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "loss.png").exists()
