"""An agent that runs in a Pod, and the connection to it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.core import wire
from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.environment import ENV_AWAITED
from jupyter_paddle_gpu.core.errors import AgentUnreachable
from jupyter_paddle_gpu.core.wire import MAX_LINE_BYTES, Hello, Message, Role, encode
from jupyter_paddle_gpu.placement.base import Gone, Reconnected
from jupyter_paddle_gpu.placement.kubernetes import podstate
from jupyter_paddle_gpu.placement.kubernetes.causes import cause_of, notice_of
from jupyter_paddle_gpu.placement.kubernetes.cluster import Cluster
from jupyter_paddle_gpu.placement.kubernetes.pod import AGENT_PORT, RUN_DIRECTORY, variables_of
from jupyter_paddle_gpu.placement.kubernetes.pods import Known
from jupyter_paddle_gpu.placement.kubernetes.relay import Relay
from jupyter_paddle_gpu.placement.lines import AgentLines, Streams

RETRY_S = 0.1
CONNECT_S = 5.0
_CONNECTION_FILE = Path(RUN_DIRECTORY, "session", "kernel.json")


async def connect(cluster: Cluster, name: str, key: ssl.SSLContext) -> Streams | None:
    """Connect to the agent of a Pod and say Hello, however long it takes; None once the Pod has ended."""
    dialling = asyncio.ensure_future(_dial(cluster, name, key))
    ending = asyncio.ensure_future(cluster.pods.until(name, lambda known: podstate.ended(known) or None))
    try:
        # a Pod that has ended answers nothing, not even that nobody listens
        await asyncio.wait({dialling, ending}, return_when=asyncio.FIRST_COMPLETED)
        return dialling.result() if dialling.done() else None
    finally:
        dialling.cancel()
        ending.cancel()


async def _dial(cluster: Cluster, name: str, key: ssl.SSLContext) -> Streams:
    while True:
        if host := podstate.address(cluster.pods.now(name).pod):
            with suppress(OSError, asyncio.TimeoutError):
                opening = asyncio.open_connection(host, AGENT_PORT, ssl=key, limit=MAX_LINE_BYTES + 1)
                reader, writer = await asyncio.wait_for(opening, CONNECT_S)
                writer.write(encode(Hello(Role.SERVER, os.getpid())))
                return reader, writer
        await asyncio.sleep(RETRY_S)


class PodPlaced:
    """The agent of the Pod ``name``. ``connect`` made the streams."""

    def __init__(self, cluster: Cluster, name: str, key: ssl.SSLContext, streams: Streams) -> None:
        self._cluster, self._name, self._key = cluster, name, key
        self._lines = AgentLines(streams, lambda: connect(cluster, name, key))
        self._relay: Relay | None = None
        self._devices = podstate.devices(cluster.pods.now(name).pod)
        self._warner = asyncio.create_task(self._warn(), name=f"paddle-gpu-warn-{name}")

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    async def _warn(self) -> None:
        """Tell the agent of its end as soon as the API server knows, with the cause: the node only sends SIGTERM."""

        def noticed(known: Known) -> wire.Evict | Known | None:
            if podstate.ended(known):
                return known
            notice = notice_of(known.pod, self._cluster.api.now_s())
            return None if notice is None else wire.Evict(notice)

        evict = await self._cluster.pods.until(self._name, noticed)
        if isinstance(evict, wire.Evict):
            with suppress(AgentUnreachable):
                await self._lines.send(evict)

    async def receive(self) -> Message | Reconnected | None:
        """See Placed."""
        return await self._lines.receive()

    async def send(self, message: Message) -> None:
        """See Placed. What starts a kernel is said in the Pod's own terms. Raises PlacementError where one of the
        kernel's ports on this machine is in use."""
        if isinstance(message, wire.Start):
            message = await self._translated(message)
        await self._lines.send(message)

    async def _translated(self, start: wire.Start) -> wire.Start:
        if start.connection_file is None:
            raise AgentUnreachable("A kernel in a Pod needs a connection file")
        connection = json.loads(await asyncio.to_thread(start.connection_file.read_text))
        if self._relay is None:
            host = podstate.address(self._cluster.pods.now(self._name).pod)
            self._relay = Relay(connection, host)
            await self._relay.open()
        settings = self._cluster.settings
        awaited = {ENV_AWAITED: start.env[ENV_AWAITED]} if ENV_AWAITED in start.env else {}
        return dataclasses.replace(
            start,
            command=tuple(_in_pod(argument, start.connection_file) for argument in start.command),
            cwd=settings.working_directory or start.cwd,
            env=variables_of(start.env, settings) | awaited,
            connection_file=_CONNECTION_FILE,
            connection=_listening(connection),
        )

    async def close(self) -> None:
        """See Placed."""
        self._warner.cancel()
        await asyncio.gather(self._warner, return_exceptions=True)
        if self._relay is not None:
            await self._relay.close()
        await self._lines.close()

    async def wait_gone(self) -> Gone:
        """See Placed. Nothing of the Pod is left in the cluster then, or will be in a moment."""
        known = await self._cluster.pods.until(self._name, lambda known: known if podstate.ended(known) else None)
        self._cluster.remove(self._name)
        cause = None if podstate.exit_code(known.pod) == 0 else cause_of(known.pod)
        return Gone(podstate.exit_code(known.pod), cause)


def _in_pod(argument: str, connection_file: Path) -> str:
    """Return an argument of the kernel's command as it is in the Pod."""
    if argument == sys.executable:
        return "python3"
    return str(_CONNECTION_FILE) if os.path.realpath(argument) == str(connection_file) else argument


def _listening(connection: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the kernel binds: the same ports, on all addresses of its Pod."""
    return {**connection, "ip": "0.0.0.0"}  # noqa: S104  # of the Pod, whose only other ports are the agent's
