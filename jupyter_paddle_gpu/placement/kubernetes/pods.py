"""What is known of our Pods: one list and one watch of the namespace for all sessions."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.placement.kubernetes.api import Api, ApiRefused

logger = logging.getLogger(__name__)

T = TypeVar("T")
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
LONGEST_CLEAN_PAUSE_S = 2.0  # after a watch that only ended: what changes meanwhile is told late
LASTED_S = 1.0  # a watch that ends sooner is one that may do so again and again
_GONE, _FORBIDDEN = 410, 403


@dataclass(frozen=True)
class Known:
    """A Pod as the API server last told it; ``deleted``: it is no more there."""

    pod: Mapping[str, Any]
    deleted: bool = False


class Pods:
    """The Pods at ``path`` that carry ``selector``. Used from one event loop; ``close`` ends its task."""

    def __init__(self, api: Api, path: str, selector: str) -> None:
        self._api, self._path, self._selector = api, path, selector
        self._known: dict[str, Known] = {}
        self._followed: set[str] = set()  # their last state is kept when they are deleted
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._listed = asyncio.Event()
        self._version = ""  # of the last thing that was told; empty: to be listed anew
        self._fault: PlacementError | None = None  # why nothing is known yet
        self._task: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Return once the Pods are known. Raises PlacementError where the first attempt to learn of them failed."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_up(), name="paddle-gpu-pods")
        await self._listed.wait()
        if self._fault is not None:
            raise self._fault

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def all(self) -> list[Mapping[str, Any]]:
        """Return the Pods that are there."""
        return [known.pod for known in self._known.values() if not known.deleted]

    def follow(self, pod: Mapping[str, Any]) -> None:
        """Take in a Pod that is ours, perhaps made just now: the watch may be later. ``forget`` ends it."""
        self._followed.add(pod["metadata"]["name"])
        self._known.setdefault(pod["metadata"]["name"], Known(pod))

    def forget(self, name: str) -> None:
        """Nobody asks for this Pod any more. May be repeated."""
        self._followed.discard(name)
        if self.now(name).deleted:
            self._known.pop(name, None)

    async def until(self, name: str, found: Callable[[Known], T | None]) -> T:
        """Return the first value other than None that ``found`` has for what is known of a Pod, now or later."""
        while (value := found(self._known.get(name, Known({}, deleted=True)))) is None:
            news = asyncio.get_running_loop().create_future()
            waiting = self._waiting.setdefault(name, set())
            waiting.add(news)
            try:
                await news
            finally:
                waiting.discard(news)
                if not waiting and self._waiting.get(name) is waiting:
                    del self._waiting[name]
        return value

    def now(self, name: str) -> Known:
        """Return what is known of a Pod; one that is not known counts as deleted."""
        return self._known.get(name, Known({}, deleted=True))

    # The task.

    async def _keep_up(self) -> None:
        pause_s, clock = SHORTEST_PAUSE_S, asyncio.get_running_loop().time
        while True:
            begun_s, after_s, longest_s = clock(), 0.0, LONGEST_PAUSE_S
            try:
                if not self._version:
                    await self._list()
                await self._follow()
                longest_s = LONGEST_CLEAN_PAUSE_S
            except ApiRefused as error:
                if not error.passes and error.code != _FORBIDDEN:
                    self._version = ""
                longest_s = LONGEST_CLEAN_PAUSE_S if error.code == _GONE else LONGEST_PAUSE_S
                after_s = error.after_s
                self._failed(error, quiet=error.code == _GONE)
            except PlacementError as error:
                self._failed(error)
            except (ValueError, LookupError, TypeError, AttributeError) as error:  # no event of the API's: a proxy, say
                self._version = ""
                self._failed(PlacementError(f"The cluster's API tells what is not understood: {error!r}"))
            pause_s = SHORTEST_PAUSE_S if clock() - begun_s > LASTED_S else min(longest_s, 2 * pause_s)
            spread_s = pause_s * random.uniform(0.5, 1.0)  # noqa: S311  # spreads the servers of many users
            await asyncio.sleep(max(after_s, spread_s))

    def _failed(self, error: PlacementError, quiet: bool = False) -> None:
        if not quiet:
            logger.warning("The Pods are not watched at the moment: %s", error)
        self._fault = None if self._known or self._listed.is_set() else error
        self._listed.set()

    async def _list(self) -> None:
        answer = await self._api.request("GET", self._path, labelSelector=self._selector)
        version = str(answer["metadata"]["resourceVersion"])
        there = {pod["metadata"]["name"]: pod for pod in answer["items"]}
        for name, known in list(self._known.items()):
            if name not in there and not known.deleted and _version(known.pod) <= int(version):
                self._take(name, Known(known.pod, deleted=True))
        for name, pod in there.items():
            self._take(name, Known(pod))
        self._version, self._fault = version, None
        self._listed.set()

    async def _follow(self) -> None:
        events = self._api.watch(self._path, labelSelector=self._selector, resourceVersion=self._version)
        async for event in events:
            kind, pod = event.get("type"), event.get("object", {})
            if kind == "ERROR":
                raise ApiRefused(int(pod.get("code", 0)), str(pod.get("reason", "")), str(pod.get("message", "")))
            if kind != "BOOKMARK":
                self._take(pod["metadata"]["name"], Known(pod, deleted=kind == "DELETED"))
            self._version = str(pod["metadata"]["resourceVersion"])

    def _take(self, name: str, known: Known) -> None:
        if known.deleted and name not in self._followed:
            self._known.pop(name, None)
        else:
            self._known[name] = known
        for news in self._waiting.pop(name, ()):
            if not news.done():
                news.set_result(None)


def _version(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"]["resourceVersion"])
