"""A Pod that was asked for, from its making to its node."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import suppress

from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.base import Grant, Order, Waiting
from jupyter_paddle_gpu.placement.kubernetes import podstate
from jupyter_paddle_gpu.placement.kubernetes.api import ApiRefused, ApiUnreachable
from jupyter_paddle_gpu.placement.kubernetes.cluster import Cluster
from jupyter_paddle_gpu.placement.kubernetes.pods import Known
from jupyter_paddle_gpu.placement.kubernetes.stuck import Stuck

LOOK_S = 10.0
AGAIN_S, LONGEST_AGAIN_S = 1.0, 60.0  # between two attempts to make a Pod that may be refused for a while


class PodGrant:
    """A Pod that has its node."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self.name = cluster, name
        self.stuck = Stuck(cluster, name)

    @property
    def devices(self) -> tuple[Device, ...]:
        return podstate.devices(self._cluster.pods.now(self.name).pod)

    @property
    def why(self) -> str:
        """See Grant."""
        reason = self.stuck.reason()
        return "" if reason is None else reason.told()

    def give_back(self) -> None:
        """See Grant."""
        self._cluster.remove(self.name)


class PodPending:
    """A session's request for a Pod. ``begin`` makes it."""

    def __init__(self, cluster: Cluster, order: Order, key_pem: str) -> None:
        self._cluster, self._order, self._key_pem = cluster, order, key_pem
        self._refused: PlacementError | None = None  # why there is no Pod yet
        self._cancelled = False
        self._making: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # the Pod's name

    async def begin(self) -> None:
        """Make the Pod, or go on trying where the refusal may pass: a quota, an API server that is away.

        Raises PlacementError, RequestError where it will not.
        """
        try:
            self._making.set_result(await self._cluster.make(self._order, self._key_pem))
        except (ApiRefused, ApiUnreachable) as error:
            if not error.passes:
                raise
            self._refused = error
            again = self._make_again(max(AGAIN_S, error.after_s))
            self._making = asyncio.create_task(again, name=f"paddle-gpu-make-{self._order.session}")

    async def _make_again(self, pause_s: float) -> str:
        while True:
            await asyncio.sleep(pause_s)
            if self._cancelled:
                raise PlacementError("Nobody waits for this Pod any more")
            try:
                name = await self._cluster.make(self._order, self._key_pem)
            except (ApiRefused, ApiUnreachable) as error:
                if not error.passes:
                    raise
                self._refused, pause_s = error, max(error.after_s, min(LONGEST_AGAIN_S, 2 * pause_s))
            else:
                if self._cancelled:
                    self._cluster.remove(name)
                return name

    async def granted(self) -> Grant:
        """See Pending."""
        while True:
            making = self._making
            name = await asyncio.shield(making)
            known = await self._decided(name)
            if making is not self._making:
                continue  # another Pod was asked for in its place
            if not podstate.scheduled(known.pod):
                self._cluster.remove(name)
                raise PlacementError(f"The Pod {name} was removed while it waited", "Restart the kernel to ask again.")
            return PodGrant(self._cluster, name)

    async def _decided(self, name: str) -> Known:
        """Wait until a node is chosen. Raises PlacementError where none will be, as long as things stay as they are."""
        held_s, limit_s = 0.0, self._cluster.settings.stuck_limit_s
        look_s = min(LOOK_S, limit_s)
        while True:
            decided = self._cluster.pods.until(name, lambda known: known if _decided(known) else None)
            with suppress(asyncio.TimeoutError):
                return await asyncio.wait_for(decided, look_s)
            reason = podstate.reason(self._cluster.pods.now(name).pod)
            if reason is None or not reason.lasts:
                held_s = 0.0
            elif (held_s := held_s + look_s) >= limit_s:
                self._cluster.remove(name)
                raise reason.error()

    async def waiting(self) -> Waiting:
        """See Pending. The scheduler has no places in a queue."""
        if not self._making.done():
            return Waiting(None, "" if self._refused is None else str(self._refused))
        if self._making.exception() is not None:
            return Waiting()
        reason = podstate.reason(self._cluster.pods.now(self._making.result()).pod)
        return Waiting(None, reason.told() if reason else "")

    async def update(self, request: GpuRequest) -> None:
        """See Pending. A Pod's request is fixed: another Pod is asked for, and the turn begins anew."""
        order = dataclasses.replace(self._order, request=request)
        if not self._making.done():
            self._order = order  # the next attempt takes it
            return
        made: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        made.set_result(await self._cluster.make(order, self._key_pem))
        old, self._making, self._order = self._making, made, order
        self._cluster.remove(old.result())

    def cancel(self) -> None:
        """See Pending."""
        self._cancelled = True
        if not self._making.done():
            self._making.add_done_callback(lambda making: making.cancelled() or making.exception())
            return  # one that is just being made is removed as soon as it has a name
        if self._making.exception() is None:
            self._cluster.remove(self._making.result())


def _decided(known: Known) -> bool:
    return podstate.leaving(known) or podstate.scheduled(known.pod)
