"""What administrators read in ``/metrics``."""

from __future__ import annotations

import urllib.request
from dataclasses import replace
from pathlib import Path

from prometheus_client.registry import CollectorRegistry

from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.server.metrics import SessionMetrics
from jupyter_paddle_gpu.server.view import RestoredView, SessionView
from tests.server.conftest import Machine, eventually
from tests.server.jupyter import TOKEN, JupyterServer

TIER = {"tier": GpuRequest().tier}


def test_a_session_that_is_evicted_and_comes_back_is_counted() -> None:
    registry, now_s = CollectorRegistry(), [0.0]
    metrics = SessionMetrics(registry, lambda: now_s[0])
    for at_s, state in (
        (0, State.REQUESTED), (4, State.STARTING), (5, State.RUNNING), (9, State.EVICTING), (9, State.EVICTING),
        (10, State.WAITING), (30, State.WAITING), (70, State.RESTORING), (72, State.RUNNING),
    ):  # fmt: skip
        now_s[0] = at_s
        metrics.observe(SessionView("s", "s", "gpu", state, GpuRequest(gpus=2)))
    assert registry.get_sample_value("paddle_gpu_given_back_gpu_seconds_total", TIER) == 120
    assert registry.get_sample_value("paddle_gpu_evictions_total", TIER) == 1
    assert registry.get_sample_value("paddle_gpu_returns_total", TIER) == 1
    assert registry.get_sample_value("paddle_gpu_wait_seconds_count", TIER) == 2
    assert registry.get_sample_value("paddle_gpu_wait_seconds_sum", TIER) == 64
    assert registry.get_sample_value("paddle_gpu_sessions", {"state": "running", **TIER}) == 1
    assert registry.get_sample_value("paddle_gpu_sessions", {"state": "evicting", **TIER}) == 0
    metrics.observe(SessionView("s", "s", "gpu", State.STOPPED, GpuRequest()))
    assert registry.get_sample_value("paddle_gpu_sessions", {"state": "running", **TIER}) == 0


def test_saves_and_restores_are_counted_with_what_they_cost() -> None:
    registry = CollectorRegistry()
    metrics = SessionMetrics(registry)
    view = SessionView("s", "s", "gpu", State.RUNNING, GpuRequest())
    saved = Snapshot(Path("/s/000001-step-7"), 7, 1000, 2.0, Cause.PERIODIC, 10.0)
    again = replace(saved, created_s=20.0, seconds=4.0)
    restored = RestoredView("000001-step-7", 7, 30.0, 0.5, 3)
    for change in ({"saved": saved}, {}, {"saved": again}, {"restored": restored}, {}):
        metrics.observe(view)
        view = replace(view, **change)
    metrics.observe(view)
    cause = {"cause": "periodic"}
    assert registry.get_sample_value("paddle_gpu_save_bytes_total", cause) == 2000
    assert registry.get_sample_value("paddle_gpu_save_seconds_count", cause) == 2
    assert registry.get_sample_value("paddle_gpu_save_seconds_sum", cause) == 6
    assert registry.get_sample_value("paddle_gpu_restores_total", TIER) == 1
    assert registry.get_sample_value("paddle_gpu_lost_steps_total", TIER) == 3


def test_a_server_tells_its_sessions(machine: Machine) -> None:
    machine.add_kernelspec("plain", {})
    server = JupyterServer(machine.root, "metrics")
    try:
        server.ask("POST", "api/kernels", {"name": "plain"})
        request = urllib.request.Request(f"http://{server.base}metrics", headers={"Authorization": f"token {TOKEN}"})

        def told() -> bool:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return f'paddle_gpu_sessions{{state="running",tier="{TIER["tier"]}"}} 1.0' in answer.read().decode()

        eventually(told)
    finally:
        server.stop()
