"""Machines with GPUs that a library in C plays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.telemetry import driver


@pytest.fixture(scope="session")
def built_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return driver.build(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def machine(built_library: Path, tmp_path: Path) -> driver.Machine:
    """A machine of its own for one test, with one GPU until the test says otherwise."""
    shutil.copy(built_library, tmp_path)
    machine = driver.Machine(tmp_path)
    machine.is_now("gpus 1")
    return machine
