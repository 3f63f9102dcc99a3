"""Agents for the tests, each ended with its kernel after its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.request import GpuRequest
from tests.agent.harness import RunningAgent, make_spec, scratch


@pytest.fixture
def directory() -> Iterator[Path]:
    with scratch() as path:
        yield path


@pytest.fixture
def run_agent(directory: Path) -> Iterator[Callable[..., RunningAgent]]:
    """Start an agent; ``grace_s`` and the fields of AgentSpec may be given."""
    agents: list[RunningAgent] = []

    def run(grace_s: float = 20.0, **fields: object) -> RunningAgent:
        agents.append(RunningAgent(make_spec(directory, request=GpuRequest(gpus=0, grace_s=grace_s), **fields)))
        return agents[-1]

    yield run
    for agent in agents:
        agent.close()
