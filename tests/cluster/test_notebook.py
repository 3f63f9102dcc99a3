"""A notebook whose GPU the scheduler takes away and gives back."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.cluster import training
from tests.cluster.client import Cluster
from tests.cluster.namespace import Namespace, eventually
from tests.cluster.notebook import do, losses, nothing_left, opened, serve, served, team, wait_for_state
from tests.server.jupyter import JupyterServer

OPEN = {"path": "a.ipynb", "name": "a.ipynb", "type": "notebook", "kernel": {"name": "paddle-gpu"}}
pytestmark = pytest.mark.timeout(900)  # the first test waits for the cluster and its image


def epochs(evictions: int) -> int:
    """Return how long a training must be for so many evictions in its middle: each comes within 25 steps."""
    return 2 * evictions + 2


async def train_undisturbed(server: JupyterServer, evictions: int) -> str:
    session = server.open("undisturbed.ipynb", "paddle-gpu")
    socket = await opened(server, session["kernel"]["id"])
    await do(socket, training.SETUP)
    await do(socket, f"pause_s, epochs = 0, {epochs(evictions)}")
    await do(socket, training.TRAIN)
    found = await losses(socket)
    await socket.close()
    server.ask("DELETE", f"api/sessions/{session['id']}")
    return found


async def preempted_and_back(server: JupyterServer, namespace: Namespace, name: str, kernel: str, length: int) -> None:
    """Train until an the urgent Pod ``name`` takes the GPU; return when that has run."""
    socket = await opened(server, kernel)
    await do(socket, training.SETUP)
    await do(socket, f"pause_s, epochs = 0.1, {length}")
    cell = asyncio.ensure_future(socket.run(training.TRAIN, 120))
    await asyncio.sleep(random.uniform(0.5, 2.0))  # somewhere in the training
    ran = asyncio.ensure_future(namespace.run_urgent(name))
    told = await cell
    assert "saved, waiting for a GPU" in told, told
    await socket.close()
    await ran


def test_training_goes_on_bit_equal_after_the_scheduler_took_the_gpu(
    home: Path, pytestconfig: pytest.Config, cluster: Cluster
) -> None:
    evictions = int(pytestconfig.getoption("--evictions"))

    async def play(server: JupyterServer, namespace: Namespace) -> None:
        expected = await train_undisturbed(server, evictions)
        session = server.open("train.ipynb", "paddle-gpu")
        kernel = session["kernel"]["id"]
        for number in range(evictions):
            await preempted_and_back(server, namespace, f"urgent-{number}", kernel, epochs(evictions))
        socket = await opened(server, kernel)
        await do(socket, training.SETUP)
        await do(socket, f"pause_s, epochs = 0, {epochs(evictions)}")
        await do(socket, training.TRAIN)
        assert await losses(socket) == expected
        await socket.close()
        server.ask("DELETE", f"api/sessions/{session['id']}")
        await nothing_left(namespace)

    async def run() -> None:
        async with team(cluster) as namespace, served(home, namespace) as server:
            await play(server, namespace)

    asyncio.run(run())


@pytest.mark.parametrize("how", ["drained", "sigterm"])
def test_a_kernel_that_is_sent_away_comes_back_elsewhere(home: Path, how: str, cluster: Cluster) -> None:
    async def run() -> None:
        async with team(cluster) as namespace, served(home, namespace) as server:
            kernel = server.open("sent-away.ipynb", "paddle-gpu")["kernel"]["id"]
            socket = await opened(server, kernel)
            await do(socket, training.SETUP)
            await do(socket, "pause_s, epochs = 0.1, 6")
            cell = asyncio.ensure_future(socket.run(training.TRAIN, 120))
            await asyncio.sleep(random.uniform(0.5, 2.0))  # somewhere in the training
            pod = (await namespace.pods())[0]["metadata"]["name"]
            if how == "drained":
                await namespace.evict(pod)
            else:
                await namespace.api.request("DELETE", f"{namespace.path}/pods/{pod}")
            assert "saved, waiting for a GPU" in await cell
            await socket.close()
            assert f"Gives up its place ({how})" in server.log
            socket = await opened(server, kernel)
            await socket.close()
            assert [one["metadata"]["name"] for one in await namespace.pods() if one["metadata"]["name"] != pod]

    asyncio.run(run())


def test_a_server_that_was_killed_finds_its_kernel_again(home: Path, cluster: Cluster) -> None:
    async def run() -> None:
        async with team(cluster) as namespace:
            first = serve(home, namespace)
            kernel = first.open("adopted.ipynb", "paddle-gpu")["kernel"]["id"]
            socket = await opened(first, kernel)
            await do(socket, "kept = 42")
            await socket.close()
            first.kill()
            async with served(home, namespace) as second:
                socket = await opened(second, kernel)
                assert "42" in await do(socket, "print(kept)")
                await socket.close()
                assert len(await namespace.pods()) == 1, "nothing was started twice"
            await nothing_left(namespace)

    asyncio.run(run())


def test_who_gives_up_waiting_leaves_nothing_behind(home: Path, cluster: Cluster) -> None:
    async def run() -> None:
        async with team(cluster) as namespace:
            await namespace.take_gpu()
            async with served(home, namespace) as server:
                session = server.open("waits.ipynb", "paddle-gpu")
                kernel = session["kernel"]["id"]
                await wait_for_state(server, kernel, "requested")

                async def explained() -> bool:
                    return "too little nvidia.com/gpu free" in server.reason(kernel)

                await eventually(explained, "the reason is told")
                server.ask("DELETE", f"api/sessions/{session['id']}")
                await nothing_left(namespace)

    asyncio.run(run())


def test_an_image_that_is_not_there_is_named(home: Path, cluster: Cluster) -> None:
    async def run() -> None:
        async with team(cluster) as namespace:
            await namespace.run_urgent("urgent")  # the GPU is free after that
            namespace.image, namespace.pull = "localhost/no-such-image:1", "Never"
            async with served(home, namespace) as server:
                code, answer = server.refused("POST", "api/sessions", OPEN)
                assert code == 500
                assert "no-such-image" in str(answer)
                await nothing_left(namespace)

    asyncio.run(run())
