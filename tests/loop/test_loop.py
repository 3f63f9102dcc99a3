"""A kernel under a plain client trains, loses its slot to urgent jobs at random moments, and ends bit-equal."""

from __future__ import annotations

import random
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.loop import training
from tests.loop.machine import Cell, Notebook, environment, urgent_job

PAUSE_S = 0.02


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a machine of this test's own, also for the provisioner in this process."""
    variables = environment(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


def train_undisturbed(notebook: Notebook) -> Cell:
    notebook.run("pause_s = 0")
    cell = notebook.run(training.TRAIN)
    assert cell.ename is None, cell.evalue
    return cell


def train_until_evicted(notebook: Notebook, after_s: float, machine: dict[str, str]) -> bool:
    """Run the training cell, start an urgent job ``after_s`` after its first step, and wait for the kernel's return.

    Returns False where nothing was left to train: the eviction before had come after the last step.
    """
    jobs: list[Future[subprocess.Popen[str]]] = []

    def start_job() -> subprocess.Popen[str]:
        time.sleep(after_s)  # the random moment itself
        return urgent_job(machine, "print('urgent work done')")

    with ThreadPoolExecutor(1) as pool:

        def on_text(text: str) -> None:
            if not jobs:
                jobs.append(pool.submit(start_job))

        notebook.run(f"pause_s = {PAUSE_S}")
        cell = notebook.run(training.TRAIN, on_text)
        if not jobs:
            return False
        job = jobs[0].result()
    output, _ = job.communicate(timeout=60)
    assert (job.returncode, "urgent work done" in output) == (0, True), output
    if cell.ename is not None:  # None: the job came after the last step, the idle kernel was evicted
        assert cell.ename == "Evicted", (cell.ename, cell.evalue)
        assert "saved, waiting for the CPU slot, position 1" in cell.evalue
    notebook.wait_until_back()
    return True


def test_every_loss_equals_the_training_never_evicted(
    machine: dict[str, str], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    evictions = int(pytestconfig.getoption("--evictions"))
    with Notebook(machine, tmp_path) as notebook:
        notebook.run(training.SETUP)
        train_undisturbed(notebook)
        expected = notebook.losses()
    assert [step for step, _ in expected] == list(range(len(expected)))
    chance = random.Random(evictions)
    with Notebook(machine, tmp_path) as notebook:
        done = 0
        while done < evictions:
            assert notebook.run(training.SETUP).ename is None
            if train_until_evicted(notebook, chance.uniform(0.0, 1.0), machine):
                done += 1
            else:
                assert notebook.losses() == expected
            if chance.random() < 0.3:  # a training that ends between two evictions ends right
                assert notebook.run(training.SETUP).ename is None
                train_undisturbed(notebook)
                assert notebook.losses() == expected
        assert notebook.run(training.SETUP).ename is None
        train_undisturbed(notebook)
        assert notebook.losses() == expected
