"""What the kernel's tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kernel.kernels import AgentEnd, Notebook, notebook


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The directory of a notebook."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@contextmanager
def agent_end() -> Iterator[AgentEnd]:
    """The agent's end of one kernel's line."""
    short = Path(tempfile.mkdtemp(prefix="pg"))  # a socket's path is short
    end = AgentEnd(short / "a.sock")
    try:
        yield end
    finally:
        end.close()
        shutil.rmtree(short)


@pytest.fixture
def agent() -> Iterator[AgentEnd]:
    with agent_end() as end:
        yield end


@pytest.fixture
def evictable(place: Path, agent: AgentEnd) -> Iterator[Notebook]:
    """A kernel of ours with an agent."""
    with notebook(place, agent) as opened:
        yield opened
