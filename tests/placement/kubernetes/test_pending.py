"""A request that is refused for a while is made again, said why, and given up without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.agentspec import SessionFiles
from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.base import Order
from jupyter_paddle_gpu.placement.kubernetes.cluster import Cluster
from jupyter_paddle_gpu.placement.kubernetes.pending import PodGrant, PodPending
from jupyter_paddle_gpu.placement.kubernetes.settings import KubernetesSettings
from tests.placement.kubernetes.apiserver import ApiServer
from tests.placement.kubernetes.test_pods import PATIENCE_S, eventually

QUOTA = 'pods "p" is forbidden: exceeded quota: gpus, requested: nvidia.com/gpu=1, used: nvidia.com/gpu=2, limited: 2'


@asynccontextmanager
async def asked(folder: Path, *refusals: tuple[int, str, str]) -> AsyncIterator[tuple[ApiServer, PodPending]]:
    """A request to an API server that refuses the first attempts."""
    async with ApiServer().running(folder) as server:
        cluster = Cluster(KubernetesSettings("team", "paddle:3", kubeconfig=str(server.kubeconfig)))
        order = Order("ab12", GpuRequest(), SessionFiles(folder, folder, "ab12"), "a.ipynb", 300.0)
        await cluster.pods.ready()
        await eventually(lambda: server.watches)
        server.refusals = list(refusals)
        try:
            yield server, PodPending(cluster, order, "a key")
        finally:
            await cluster.pods.close()
            await cluster.api.close()


def test_a_quota_that_is_reached_is_waited_for(tmp_path: Path) -> None:
    async def play() -> None:
        async with asked(tmp_path, (403, "Forbidden", QUOTA)) as (server, pending):
            await pending.begin()
            assert "quota gpus is reached" in (await pending.waiting()).why
            waiting = asyncio.ensure_future(pending.granted())
            await eventually(lambda: server.pods)
            server.schedule("paddle-gpu-ab12-1", "node-0")
            grant = await asyncio.wait_for(waiting, PATIENCE_S)
            assert isinstance(grant, PodGrant)
            assert grant.name == "paddle-gpu-ab12-1"

    asyncio.run(play())


def test_who_gives_up_meanwhile_leaves_no_pod(tmp_path: Path) -> None:
    async def play() -> None:
        async with asked(tmp_path, (503, "ServiceUnavailable", "etcd is away")) as (server, pending):
            await pending.begin()
            waiting = asyncio.ensure_future(pending.granted())
            pending.cancel()
            with pytest.raises(PlacementError, match="Nobody waits"):
                await asyncio.wait_for(waiting, PATIENCE_S)
            assert not server.pods

    asyncio.run(play())


def ended(at: str) -> dict[str, object]:
    terminated = {"exitCode": 143, "finishedAt": at}
    return {"phase": "Failed", "containerStatuses": [{"name": "kernel", "state": {"terminated": terminated}}]}


def test_pods_that_a_dead_server_left_are_removed(tmp_path: Path) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")

    async def play() -> None:
        async with ApiServer().running(tmp_path) as server:
            server.put("left", **ended("2026-01-01T00:00:00Z"))
            server.put("just-ended", **ended(now.replace("+00:00", "Z")))
            server.put("runs", phase="Running")
            cluster = Cluster(KubernetesSettings("team", "paddle:3", kubeconfig=str(server.kubeconfig)))
            await cluster.ready()
            await eventually(lambda: len(server.pods) == 2)
            assert set(server.pods) == {"just-ended", "runs"}
            await cluster.pods.close()
            await cluster.api.close()

    asyncio.run(play())


def test_what_will_never_be_granted_is_refused_at_once(tmp_path: Path) -> None:
    message = 'pods "p" is forbidden: no PriorityClass with name paddle-gpu-notebook was found'

    async def play() -> None:
        async with asked(tmp_path, (403, "Forbidden", message)) as (server, pending):
            with pytest.raises(PlacementError, match="no PriorityClass paddle-gpu-notebook"):
                await pending.begin()
            assert not server.pods

    asyncio.run(play())
