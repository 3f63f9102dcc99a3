"""`jupyter paddle-gpu snapshots`, as a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.checkpoint.where import directory_of
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_PADDLE_GPU_SNAPSHOTS", str(tmp_path / "root"))
    return tmp_path / "root"


def save(notebook: Path, *steps: int) -> Store:
    store = Store(directory_of(notebook))
    for step in steps:
        state = State({"w": RawTensor("U8", (4,), memoryview(b"1234"))}, {})
        store.save(state, position=Position(step, 0, 0), cause=Cause.MANUAL)
    return store


def command(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_paddle_gpu.admin.app", "snapshots", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_all_are_listed_and_one_is_looked_into(tmp_path: Path) -> None:
    assert "None yet." in command()
    notebook = tmp_path / "训练.ipynb"
    store = save(notebook, 5, 9)
    save(tmp_path / "other.ipynb", 3)
    assert store.directory.name in command()
    assert "step 3" in command()
    for of in (str(notebook), store.directory.name, str(store.directory)):
        listed = command("--of", of)
        assert "step 9" in listed
        assert "step 3" not in listed
    plain = json.loads(command("--json"))["snapshots"]
    assert [snapshot["step"] for snapshot in plain[str(store.directory)]] == [9, 5]


def test_what_one_notebook_has_needs_no_name(tmp_path: Path) -> None:
    store = save(tmp_path / "a.ipynb", 5, 9)
    command("pin", "5")
    assert [snapshot.pinned for snapshot in store.list()] == [False, True]
    assert "U8 [4]" in command("show")
    assert command("verify").count("whole") == 2
    command("delete", "9")
    assert [snapshot.step for snapshot in store.list()] == [5]


def test_what_is_meant_must_be_clear(tmp_path: Path) -> None:
    assert "A notebook makes them" in command("show", code=2)
    save(tmp_path / "a.ipynb", 1)
    save(tmp_path / "b.ipynb", 1)
    assert "Say it with --of: a notebook, or one of a-" in command("show", code=2)
    assert "no-such has no snapshots" in command("verify", "--of", "no-such", code=2)
    assert "There are: 000001-step-1" in command("delete", "7", "--of", str(tmp_path / "a.ipynb"), code=2)
    assert "invalid choice" in command("destroy", code=2)
    assert "--json goes with list" in command("show", "--json", code=2)


def test_a_broken_one_is_an_error(tmp_path: Path) -> None:
    store = save(tmp_path / "a.ipynb", 1)
    (store.list()[0].path / "tensors.safetensors").write_bytes(b"")
    assert "tensors.safetensors: it has 0 bytes" in command("verify", code=2)
