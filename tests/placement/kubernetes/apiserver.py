"""A stand-in for the API server, which the real client talks to: Pods of one namespace, list and watch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

PATH = "/api/v1/namespaces/team/pods"
_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: test, user: {token: abc}}]
"""


class ApiServer:
    """Runs inside ``running``. ``refusals`` are answered first, one each; ``requests`` has every request seen.

    ``token`` is the one that is accepted; ``hasty``: a watch ends as soon as it is opened; ``after`` is what
    Retry-After says with a refusal.
    """

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.refusals: list[tuple[int, str, str]] = []
        self.requests: list[str] = []
        self.token, self.hasty, self.after = "abc", False, ""
        self.kubeconfig = Path()
        self._watches: set[asyncio.Queue[dict[str, Any] | bytes | None]] = set()

    def put(self, name: str, **status: Any) -> None:
        """Make or change a Pod, and tell the watches."""
        kind = "MODIFIED" if name in self.pods else "ADDED"
        self.version += 1
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self.version), "labels": {}}
        self.pods[name] = {"metadata": metadata, "spec": {}, "status": status}
        self.tell(kind, self.pods[name])

    def schedule(self, name: str, node: str) -> None:
        """Give a Pod its node."""
        self.put(name)
        self.pods[name]["spec"]["nodeName"] = node
        self.tell("MODIFIED", self.pods[name])

    def delete(self, name: str, told: bool = True) -> None:
        """Remove a Pod; ``told``: the watches hear of it."""
        pod = self.pods.pop(name)
        self.version += 1
        if told:
            self.tell("DELETED", {**pod, "metadata": {**pod["metadata"], "resourceVersion": str(self.version)}})

    def tell(self, kind: str, thing: dict[str, Any]) -> None:
        for watch in self._watches:
            watch.put_nowait({"type": kind, "object": thing})

    def write(self, raw: bytes) -> None:
        """Write to all watches what is not an event."""
        for watch in self._watches:
            watch.put_nowait(raw)

    def end_watches(self) -> None:
        """Close all watches, as the server does after a while."""
        for watch in self._watches:
            watch.put_nowait(None)

    @property
    def watches(self) -> int:
        return len(self._watches)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return self._refused(401, "Unauthorized", "Unauthorized")
        if self.refusals:
            return self._refused(*self.refusals.pop(0))
        if request.method == "DELETE":
            self.delete(request.path.rpartition("/")[2])
            return web.json_response({})
        if request.method == "POST":
            made = await request.json()
            if made["kind"] == "Pod":
                self.put(made["metadata"]["name"], **made["metadata"]["labels"])
                return web.json_response(self.pods[made["metadata"]["name"]], status=201)
            return web.json_response(made, status=201)
        if "watch" in request.query:
            return await self._watch(request)
        listed = {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.pods.values())}
        return web.json_response(listed)

    def _refused(self, code: int, reason: str, message: str) -> web.Response:
        headers = {"Retry-After": self.after} if self.after else {}
        return web.json_response({"kind": "Status", "reason": reason, "message": message}, status=code, headers=headers)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if self.hasty:
            return response
        news: asyncio.Queue[dict[str, Any] | bytes | None] = asyncio.Queue()
        self._watches.add(news)
        for pod in self.pods.values():
            if int(pod["metadata"]["resourceVersion"]) > int(request.query["resourceVersion"]):
                news.put_nowait({"type": "ADDED", "object": pod})
        try:
            while (event := await news.get()) is not None:
                await response.write(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")
        finally:
            self._watches.discard(news)
        return response

    @asynccontextmanager
    async def running(self, folder: Path, port: int = 0) -> AsyncIterator[ApiServer]:
        """Serve on a port of this machine; ``kubeconfig`` names it."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        self.port = runner.addresses[0][1]
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(_KUBECONFIG % self.port)
        try:
            yield self
        finally:
            self.end_watches()
            await runner.cleanup()
