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


def write_notebook(machine: Machine, kernel: str, *sources: str) -> None:
    spec = {"name": kernel, "display_name": kernel, "language": "python"}
    blank: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**blank, "id": f"c{number}", "source": source} for number, source in enumerate(sources)]
    notebook = {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    (machine.root / "in.ipynb").write_text(json.dumps(notebook))


WITH = {
    "jupyter-execute": "--kernel_name=gpu",
    "nbconvert": "--ExecutePreprocessor.kernel_name=gpu",
    "papermill": "-kgpu",
}


def execute(machine: Machine, tool: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Let a tool execute the notebook that was written."""
    env = {**os.environ, "JUPYTER_DEFAULT_PROVISIONER_NAME": "paddle-gpu-provisioner"}
    command = [sys.executable, *TOOLS[tool], *options]
    return subprocess.run(command, cwd=machine.root, env=env, capture_output=True, text=True, timeout=90, check=False)


@pytest.mark.parametrize("tool", TOOLS)
def test_notebook_tools_execute_as_ever(tool: str, machine: Machine) -> None:
    write_notebook(machine, "python3", "import os; x = 6", "print(x * 7, os.getcwd())")
    done = execute(machine, tool)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "destroyed but it is pending" not in done.stderr
    executed = json.loads((machine.root / "out.ipynb").read_text())
    assert "".join(executed["cells"][-1]["outputs"][0]["text"]) == f"42 {machine.root}\n"
    eventually(lambda: not machine.agents(), 10)
    assert not list(Path(machine.data / "paddle-gpu" / "sessions").iterdir())


@pytest.mark.parametrize("tool", TOOLS)
def test_notebook_tools_say_that_their_kernel_was_evicted(tool: str, machine: Machine) -> None:
    """papermill asks the kernel for its info behind the cell that failed, and needs a true answer."""
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "5s"})
    cell = "%load_ext jupyter_paddle_gpu\nimport pathlib, time\npathlib.Path('begun').touch()\ntime.sleep(60)"
    write_notebook(machine, "gpu", cell)
    command = [sys.executable, *TOOLS[tool]]
    with subprocess.Popen(command, cwd=machine.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        eventually(lambda: (machine.root / "begun").exists(), 60)
        ticket = machine.file()
        assert ticket.wait(timeout_s=20), "the GPU was not given up"
        output = running.communicate(timeout=60)[0].decode()
        ticket.release()
    assert running.returncode == 1
    assert "Evicted: nothing to save, waiting for a GPU, position 1" in output.splitlines()[-5:], output


@pytest.mark.parametrize("tool", TOOLS)
def test_a_request_in_a_notebook_that_a_tool_executes(tool: str, machine: Machine) -> None:
    """It says how the notebook has its GPU from the start; then it is in place, and shows no live view to nobody."""
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "5s"})
    write_notebook(
        machine, "python3", "%load_ext jupyter_paddle_gpu", "%paddle_gpu request --gpus 1", "print('went on')"
    )
    refused = execute(machine, tool)
    assert refused.returncode == 1
    output = refused.stdout + refused.stderr
    assert "Another number of GPUs needs a new kernel, and a tool does not begin again with it" in output
    assert WITH[tool].replace("gpu", "paddle-gpu").replace("-kp", "-k p") in output
    done = execute(machine, tool, WITH[tool])
    assert done.returncode == 0, done.stderr
    cells = json.loads((machine.root / "out.ipynb").read_text())["cells"]
    assert [output["data"]["text/plain"][0] for output in cells[-2]["outputs"]] == ["Requested\n"]
    assert cells[-1]["outputs"][0]["text"] == ["went on\n"]
