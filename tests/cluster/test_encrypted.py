"""Nobody between the server and a Pod reads what a notebook says, or is answered by its kernel."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import cast

import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.connect import KernelConnectionInfo

from tests.cluster.client import Cluster
from tests.cluster.notebook import do, opened, served, team
from tests.cluster.wire import listening

pytestmark = pytest.mark.timeout(900)  # the first test waits for the cluster and its image
SAYS = "print('open' + ' sesame')"


async def answers(connection: KernelConnectionInfo, within_s: float) -> bool:
    """Whether a kernel answers a client that has this connection."""
    client = AsyncKernelClient()
    client.load_connection_info(connection)
    client.start_channels(hb=False)
    try:
        await client.kernel_info(reply=True, timeout=within_s)
    except TimeoutError:
        return False
    finally:
        client.stop_channels()
    return True


def test_messages_are_read_by_nobody_else_and_who_has_no_key_is_not_answered(home: Path, cluster: Cluster) -> None:
    async def run() -> None:
        async with team(cluster) as namespace, served(home, namespace) as server:
            kernel = server.open("private.ipynb", "paddle-gpu")["kernel"]["id"]
            socket = await opened(server, kernel)
            pod = (await namespace.pods())[0]
            with listening(pod["status"]["podIP"]) as heard:
                assert "open sesame" in await do(socket, SAYS)
            assert len(heard.packets) > 10
            assert b"sesame" not in heard.whole
            assert b"execute_request" not in heard.whole
            connection = json.loads((home / "data" / "paddle-gpu" / "sessions" / kernel / "session.json").read_text())
            known = {**connection["launch"]["connection"], "ip": pod["status"]["podIP"]}
            assert await answers(cast(KernelConnectionInfo, known), 30)
            unknown = {name: value for name, value in known.items() if not name.startswith("curve_")}
            assert not await answers(cast(KernelConnectionInfo, unknown), 3)
            secret = known["curve_secretkey"]
            assert secret not in json.dumps(pod)
            assert secret not in server.log
            await socket.close()

    asyncio.run(run())
