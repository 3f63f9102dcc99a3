"""The placement in a cluster: Kubernetes queues and schedules, the agent is a Pod's first process."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import ClassVar

from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.base import Grant, Order, Overview
from jupyter_paddle_gpu.placement.kubernetes import podstate
from jupyter_paddle_gpu.placement.kubernetes.cluster import Cluster
from jupyter_paddle_gpu.placement.kubernetes.credentials import new_key
from jupyter_paddle_gpu.placement.kubernetes.pending import PodGrant, PodPending
from jupyter_paddle_gpu.placement.kubernetes.placed import PodPlaced, connect
from jupyter_paddle_gpu.placement.kubernetes.pods import Known
from jupyter_paddle_gpu.placement.kubernetes.settings import KubernetesSettings
from jupyter_paddle_gpu.placement.private import write_private
from jupyter_paddle_gpu.placement.tls import shared_key


class KubernetesPlacement:
    """Sessions in one namespace of a cluster. Used from one event loop."""

    remote: ClassVar[bool] = True

    def __init__(self, settings: KubernetesSettings) -> None:
        self._settings = settings
        self._made: Cluster | None = None

    @property
    def _cluster(self) -> Cluster:
        if self._made is None:  # not before there is a loop
            self._made = Cluster(self._settings)
        return self._made

    async def close(self) -> None:
        """See Placement."""
        if self._made is not None:
            await self._made.close()

    async def check(self, request: GpuRequest) -> None:
        """See Placement."""
        self._settings.priority_class(request.tier)

    async def request(self, order: Order) -> PodPending:
        """See Placement."""
        key_pem = await asyncio.to_thread(_key_of, order)
        pending = PodPending(self._cluster, order, key_pem)
        await pending.begin()
        return pending

    async def start(self, order: Order, grant: Grant) -> PodPlaced:
        """See Placement."""
        if not isinstance(grant, PodGrant):
            raise TypeError("A grant of another placement")
        key = await asyncio.to_thread(_context_of, order)
        connecting = asyncio.ensure_future(connect(self._cluster, grant.name, key))
        hopeless = asyncio.ensure_future(grant.stuck.hopeless())
        try:
            await asyncio.wait({connecting, hopeless}, return_when=asyncio.FIRST_COMPLETED)
            if connecting.done() and (streams := connecting.result()) is not None:
                return PodPlaced(self._cluster, grant.name, key, streams)
            error = await hopeless
        except BaseException:
            grant.give_back()
            raise
        finally:
            for task in (connecting, hopeless):
                task.cancel()
        grant.give_back()
        raise error

    async def overview(self) -> Overview:
        """See Placement."""
        return Overview()

    async def adopt(self, order: Order) -> PodPlaced | None:
        """See Placement. A Pod that still waits, or is leaving, is not gone on with."""
        await self._cluster.ready()
        adopted: PodPlaced | None = None
        for pod in self._cluster.of_session(order.session):
            name = str(pod["metadata"]["name"])
            self._cluster.pods.follow(pod)
            if adopted is None and podstate.scheduled(pod) and not podstate.leaving(Known(pod)):
                with suppress(OSError, ssl.SSLError):
                    key = await asyncio.to_thread(_context_of, order)
                    streams = await connect(self._cluster, name, key)
                    adopted = None if streams is None else PodPlaced(self._cluster, name, key, streams)
                    continue
            self._cluster.remove(name)
        return adopted


def _key_of(order: Order) -> str:
    """Return the session's key as PEM, made where there is none yet."""
    file = order.files.agent_key
    if not file.exists():
        write_private(file, new_key(order.session))
    return file.read_text()


def _context_of(order: Order) -> ssl.SSLContext:
    _key_of(order)
    return shared_key(order.files.agent_key, listens=False)
