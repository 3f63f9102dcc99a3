"""Tools that know nothing of us, with the default provisioner set to ours and an empty configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.conftest import Machine, eventually

TOOLS = {
    "jupyter-execute": ["-c", "from nbclient.cli import main; main()", "--output=out.ipynb", "in.ipynb"],
    "nbconvert": ["-m", "nbconvert", "--execute", "--to=notebook", "--output=out.ipynb", "in.ipynb"],
    # papermill's own dependencies warn on new Pythons; that is not what is tested here.
    "papermill": ["-W", "ignore", "-m", "papermill", "in.ipynb", "out.ipynb"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_notebook_tools_execute_as_ever(tool: str, machine: Machine) -> None:
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    blank: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    sources = ["import os; x = 6", "print(x * 7, os.getcwd())"]
    cells = [{**blank, "id": f"c{number}", "source": source} for number, source in enumerate(sources)]
    notebook = {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    (machine.root / "in.ipynb").write_text(json.dumps(notebook))
    env = {**os.environ, "JUPYTER_DEFAULT_PROVISIONER_NAME": "paddle-gpu-provisioner"}
    command = [sys.executable, *TOOLS[tool]]
    done = subprocess.run(command, cwd=machine.root, env=env, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "destroyed but it is pending" not in done.stderr
    executed = json.loads((machine.root / "out.ipynb").read_text())
    assert "".join(executed["cells"][-1]["outputs"][0]["text"]) == f"42 {machine.root}\n"
    eventually(lambda: not machine.agents(), 10)
    assert not list(Path(machine.data / "paddle-gpu" / "sessions").iterdir())
