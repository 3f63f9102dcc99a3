"""What all sessions in one namespace share: the API, what is known of the Pods, and the tasks that nobody awaits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.placement.base import Order
from jupyter_paddle_gpu.placement.kubernetes import pod as making
from jupyter_paddle_gpu.placement.kubernetes import podstate
from jupyter_paddle_gpu.placement.kubernetes.api import Api, ApiRefused, ApiUnreachable
from jupyter_paddle_gpu.placement.kubernetes.pods import Pods
from jupyter_paddle_gpu.placement.kubernetes.settings import KubernetesSettings

logger = logging.getLogger(__name__)

REMOVE_AGAIN_S = 5.0
CLOSE_S = 3.0
LEFT_S = 600.0  # a server that lives removes an ended Pod within seconds
_CONFLICT, _NOT_FOUND = 409, 404
_NAMES_TAKEN = 20


class Cluster:
    """A namespace of a cluster. Of one event loop, on which it is made."""

    def __init__(self, settings: KubernetesSettings) -> None:
        self.settings = settings
        self.api = Api(Path(settings.kubeconfig).expanduser() if settings.kubeconfig else None)
        self._core = f"/api/v1/namespaces/{settings.namespace}"
        self.pods = Pods(self.api, f"{self._core}/pods", f"app.kubernetes.io/managed-by={making.NAME}")
        self._swept = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End the watch and the connection; what cannot be removed within CLOSE_S stays to later servers."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.pods.close()
        await self.api.close()

    def of_session(self, session: str) -> list[Mapping[str, Any]]:
        """Return the Pods of a session that are there."""
        return [pod for pod in self.pods.all() if pod["metadata"]["labels"].get(making.LABEL_SESSION) == session]

    async def ready(self) -> None:
        """Return once the Pods are known. Raises PlacementError."""
        await self.pods.ready()
        if not self._swept:
            self._swept = True
            self._remove_left()

    def _remove_left(self) -> None:
        """Remove the Pods of ours that ended long ago: their servers have ended, too, or they would be gone."""
        for pod in self.pods.all():
            ended_s = podstate.ended_s(pod)
            if ended_s is not None and self.api.now_s() - ended_s > LEFT_S:
                self.remove(str(pod["metadata"]["name"]))

    async def make(self, order: Order, key_pem: str) -> str:
        """Make the Pod of an order and its Secret; return their name. Raises PlacementError, RequestError."""
        await self.ready()
        attempt = 1 + max((_attempt(pod) for pod in self.of_session(order.session)), default=0)
        pod = await self._make_pod(order, attempt)
        name = str(pod["metadata"]["name"])
        self.pods.follow(pod)
        try:
            await self.api.request("POST", f"{self._core}/secrets", making.secret(order, self.settings, pod, key_pem))
        except BaseException:
            self.remove(name)
            raise
        return name

    async def _make_pod(self, order: Order, attempt: int) -> dict[str, Any]:
        for number in range(attempt, attempt + _NAMES_TAKEN):
            try:
                return await self.api.request("POST", f"{self._core}/pods", making.pod(order, self.settings, number))
            except ApiRefused as error:
                if error.code != _CONFLICT or error.reason != "AlreadyExists":
                    raise
        raise PlacementError(f"The names of the Pods of session {order.session} are all taken", "Restart the kernel.")

    async def events(self, pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return what the cluster has noted of a Pod in the last hour. Raises PlacementError."""
        wanted = f"involvedObject.uid={pod['metadata']['uid']}"
        answer = await self.api.request("GET", f"{self._core}/events", fieldSelector=wanted)
        events: list[Mapping[str, Any]] = answer["items"]
        return events

    def remove(self, name: str) -> None:
        """Remove a Pod, and its Secret with it, however often the API server has to be asked. Returns at once."""
        self._own(self._remove(name), f"paddle-gpu-remove-{name}")

    async def _remove(self, name: str) -> None:
        while True:
            try:
                await self.api.request("DELETE", f"{self._core}/pods/{name}")
            except (ApiRefused, ApiUnreachable) as error:
                if isinstance(error, ApiRefused) and error.code == _NOT_FOUND:
                    break
                if not error.passes:
                    logger.warning("The Pod %s stays in the cluster: %s", name, error)
                    break
                logger.warning("The Pod %s is to be removed: %s", name, error)
                await asyncio.sleep(max(REMOVE_AGAIN_S, error.after_s))
            else:
                break
        self.pods.forget(name)

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _attempt(pod: Mapping[str, Any]) -> int:
    last = str(pod["metadata"]["name"]).rpartition("-")[2]
    return int(last) if last.isdecimal() else 0
