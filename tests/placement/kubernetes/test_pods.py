"""One list and one watch: what is known of the Pods stays true over closed streams, lost events and a server away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.placement.kubernetes.api import Api
from jupyter_paddle_gpu.placement.kubernetes.pods import Known, Pods
from tests.placement.kubernetes.apiserver import PATH, ApiServer

PATIENCE_S = 20.0


@asynccontextmanager
async def watched(server: ApiServer) -> AsyncIterator[Pods]:
    api = Api(server.kubeconfig)
    pods = Pods(api, PATH, "app=ours")
    try:
        yield pods
    finally:
        await pods.close()
        await api.close()


def phase(wanted: str) -> Callable[[Known], Known | None]:
    return lambda known: known if known.pod.get("status", {}).get("phase") == wanted else None


async def soon(work: Coroutine[Any, Any, Known]) -> Known:
    return await asyncio.wait_for(work, PATIENCE_S)


async def eventually(true: Callable[[], object]) -> None:
    async def wait() -> None:
        while not true():  # noqa: ASYNC110  # the stand-in has no event for it
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), PATIENCE_S)


def test_what_changes_is_known_and_nobody_asks(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            server.put("a", phase="Pending")
            await pods.ready()
            assert [pod["metadata"]["name"] for pod in pods.all()] == ["a"]
            await eventually(lambda: server.watches)
            waiting = asyncio.ensure_future(soon(pods.until("a", phase("Running"))))
            server.put("a", phase="Running")
            assert not (await waiting).deleted
            pods.follow(server.pods["a"])
            server.delete("a")
            gone = await soon(pods.until("a", lambda known: known if known.deleted else None))
            assert gone.pod["status"]["phase"] == "Running", "its last state is kept"
            assert len(server.requests) == 2, "one list, one watch"

    asyncio.run(play())


def test_it_goes_on_where_a_stream_ended(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            await pods.ready()
            await eventually(lambda: server.watches)
            server.end_watches()
            await eventually(lambda: len(server.requests) == 3 and server.watches)
            server.put("b", phase="Running")
            await soon(pods.until("b", phase("Running")))
            assert server.requests.count(f"GET {PATH}") == 3

    asyncio.run(play())


def test_what_it_missed_is_found_by_a_new_list(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            server.put("a", phase="Running")
            await pods.ready()
            pods.follow(server.pods["a"])
            await eventually(lambda: server.watches)
            server.delete("a", told=False)
            server.tell("ERROR", {"code": 410, "reason": "Expired", "message": "too old resource version"})
            assert (await soon(pods.until("a", lambda known: known if known.deleted else None))).deleted

    asyncio.run(play())


def test_a_pod_just_made_is_not_lost_to_an_older_list(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            await pods.ready()
            await eventually(lambda: server.watches)
            made = {"metadata": {"name": "new", "resourceVersion": "99", "labels": {}}, "status": {"phase": "Pending"}}
            pods.follow(made)
            server.tell("ERROR", {"code": 410})
            await eventually(lambda: len(server.requests) >= 4)
            assert not pods.now("new").deleted

    asyncio.run(play())


def test_an_account_without_the_right_is_told_which(tmp_path: Path) -> None:
    message = 'pods is forbidden: User "anna" cannot list resource "pods" in API group "" in the namespace "team"'

    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            server.refusals = [(403, "Forbidden", message)]
            with pytest.raises(PlacementError, match="The account anna may not list pods"):
                await pods.ready()
            await eventually(lambda: server.watches)
            await pods.ready()

    asyncio.run(play())


def test_a_server_away_is_waited_for(tmp_path: Path) -> None:
    async def play() -> None:
        first = ApiServer()
        async with first.running(tmp_path):
            api = Api(first.kubeconfig)
            pods = Pods(api, PATH, "app=ours")
            first.put("a", phase="Pending")
            await pods.ready()
            await eventually(lambda: first.watches)
        assert not pods.now("a").deleted, "what was known stays known"
        second = ApiServer()
        second.version = first.version
        second.put("a", phase="Running")
        async with second.running(tmp_path, first.port):
            await soon(pods.until("a", phase("Running")))
            await pods.close()
            await api.close()

    asyncio.run(play())


def test_without_a_cluster_the_fault_says_so(tmp_path: Path) -> None:
    async def play() -> None:
        pods = Pods(Api(tmp_path / "nothing"), PATH, "app=ours")
        with pytest.raises(PlacementError, match="There is no way to the cluster"):
            await pods.ready()
        await pods.close()

    asyncio.run(play())
