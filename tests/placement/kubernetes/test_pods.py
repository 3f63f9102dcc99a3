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


async def watching(server: ApiServer, pods: Pods) -> None:
    """Wait until the Pods are known and followed."""
    await pods.ready()
    await eventually(lambda: server.watches)


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
            await watching(server, pods)
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
            await watching(server, pods)
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


def test_a_watch_that_ends_at_once_again_and_again_is_no_storm(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            server.hasty = True
            await pods.ready()
            begun_s = asyncio.get_running_loop().time()
            await eventually(lambda: len(server.requests) >= 8)
            a_second = 8 / (asyncio.get_running_loop().time() - begun_s)
            assert a_second < 4, "requests"
            server.hasty = False
            await eventually(lambda: server.watches)
            server.put("a", phase="Running")
            await soon(pods.until("a", phase("Running")))

    asyncio.run(play())


def test_a_line_that_is_cut_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            await watching(server, pods)
            seen: list[str] = []
            following = asyncio.ensure_future(pods.until("a", lambda known: note(seen, known)))
            server.put("a", phase="Pending")
            await eventually(lambda: seen == ["Pending"])
            server.write(b'{"type": "MODIFIED", "object": {"meta')
            server.end_watches()
            server.put("a", phase="Running")
            await eventually(lambda: "Running" in seen)
            server.put("a", phase="Succeeded")
            await asyncio.wait_for(following, PATIENCE_S)
            assert seen == ["Pending", "Running", "Succeeded"]
            assert server.requests.count(f"GET {PATH}") == 3, "it went on where it was, without a new list"

    def note(seen: list[str], known: Known) -> Known | None:
        if not known.deleted:
            seen.append(known.pod["status"]["phase"])
        return known if seen and seen[-1] == "Succeeded" else None

    asyncio.run(play())


@pytest.mark.parametrize("line", [b"<html>a proxy</html>\n", b'{"type": "MODIFIED", "object": {}}\n', b"[1]\n"])
def test_what_is_no_event_is_got_over(tmp_path: Path, line: bytes) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            await watching(server, pods)
            server.write(line)
            server.put("a", phase="Running")
            await soon(pods.until("a", phase("Running")))

    asyncio.run(play())


def test_a_server_that_is_busy_is_left_alone_as_long_as_it_says(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            server.refusals, server.after = [(429, "TooManyRequests", "busy")], "2"
            begun_s = asyncio.get_running_loop().time()
            with pytest.raises(PlacementError, match="busy"):
                await pods.ready()
            await eventually(lambda: server.watches)
            assert asyncio.get_running_loop().time() - begun_s >= 2

    asyncio.run(play())


def exchange_token(server: ApiServer) -> None:
    """Put the newer token where the account finds it."""
    server.kubeconfig.write_text(server.kubeconfig.read_text().replace("abc", "newer"))


def test_a_token_that_was_exchanged_is_read_again(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            await watching(server, pods)
            server.token = "newer"
            exchange_token(server)
            server.tell("ERROR", {"code": 410})
            await eventually(lambda: server.requests.count(f"GET {PATH}") >= 5)
            server.put("a", phase="Running")
            await soon(pods.until("a", phase("Running")))

    asyncio.run(play())


def test_a_token_that_has_expired_is_named_and_waited_for(tmp_path: Path) -> None:
    async def play() -> None:
        async with ApiServer().running(tmp_path) as server, watched(server) as pods:
            server.token = "newer"
            with pytest.raises(PlacementError, match="does not accept this server's credentials"):
                await pods.ready()
            exchange_token(server)
            await eventually(lambda: server.watches)
            await pods.ready()

    asyncio.run(play())


@pytest.mark.parametrize(
    "text", ["", "a word", "a: [", "apiVersion: v1\nkind: Config\n", "clusters: 7\ncurrent-context: x\n"]
)
def test_a_kubeconfig_that_is_broken_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)

    async def play() -> None:
        pods = Pods(Api(tmp_path / "config"), PATH, "app=ours")
        with pytest.raises(PlacementError, match="There is no way to the cluster"):
            await pods.ready()
        await pods.close()

    asyncio.run(play())
