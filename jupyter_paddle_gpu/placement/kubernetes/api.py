"""Requests to a cluster's API server: plain mappings in and out, the client's own sign-in and TLS below."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.placement.kubernetes.reasons import Sign, explain

Query = Mapping[str, "str | int"]
REQUEST_S = 20.0
_UNAUTHORIZED = 401
WATCH_S = 55  # how long the server keeps one watch open
_WATCH_SILENT_S = WATCH_S + 10.0
_IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class ApiRefused(PlacementError):
    """The API server answered with an error: ``code`` is HTTP's, ``reason`` Kubernetes' word. ``passes``: the same
    request may be granted later, ``after_s`` seconds from now at the earliest."""

    def __init__(self, code: int, reason: str, message: str, after_s: float = 0.0) -> None:
        known = explain([Sign(reason, message)])
        super().__init__(known.fault if known else f"The cluster answered {code}", known.next_step if known else "")
        self.code, self.reason, self.after_s = code, reason, after_s
        self.passes = (known is not None and known.passes) or code in (429, 500, 503, 504)


class ApiUnreachable(PlacementError):
    """The API server does not answer."""

    passes, after_s = True, 0.0


class Api:
    """One connection, made at the first request; of one event loop. ``kubeconfig``: None for what kubectl would take,
    or, in a Pod, its own account."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._client: Any = None
        self._connecting = asyncio.Lock()
        self._ahead_s = 0.0  # the API server's clock before ours

    def now_s(self) -> float:
        """Return the time of the API server's clock, in seconds of the epoch, as far as it has told it."""
        return time.time() + self._ahead_s

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def request(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, **query: str | int
    ) -> dict[str, Any]:
        """Send one request and return what is answered. Raises ApiRefused, ApiUnreachable."""
        try:
            return await self._request(verb, path, body, query)
        except ApiRefused as error:
            if error.code != _UNAUTHORIZED:
                raise
        await self._sign_in(self._client.configuration)  # the token may have been exchanged for a newer one
        return await self._request(verb, path, body, query)

    async def _request(self, verb: str, path: str, body: Mapping[str, Any] | None, query: Query) -> dict[str, Any]:
        async with self._answer(verb, path, body, query, REQUEST_S) as response:
            answer: dict[str, Any] = json.loads(await response.read())
            return answer

    async def watch(self, path: str, **query: str | int) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a watch until the server ends it. Raises ApiRefused, ApiUnreachable."""
        query = {**query, "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_S}
        async with self._answer("GET", path, None, query, None) as response:
            rest = b""
            async for chunk in response.content.iter_any():  # a line may be longer than aiohttp reads at once
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    yield json.loads(line)

    @asynccontextmanager
    async def _answer(
        self,
        verb: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Query,
        timeout_s: float | None,
    ) -> AsyncIterator[Any]:
        import aiohttp

        client = await self._connected()
        limit = aiohttp.ClientTimeout(total=timeout_s, sock_connect=REQUEST_S, sock_read=_WATCH_SILENT_S)
        prepared = await client.param_serialize(
            verb, path, None, list(query.items()), {"Accept": "application/json"}, body, auth_settings=["BearerToken"]
        )
        try:
            response = (await client.call_api(*prepared, _request_timeout=limit, _preload_content=False)).response
            async with response:
                self._read_clock(response.headers.get("Date"))
                if response.status >= 400:
                    raise _refused(response.status, await response.read(), response.headers.get("Retry-After", ""))
                yield response
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
            reason = str(error) or f"no answer within {timeout_s:g} s"
            raise ApiUnreachable(f"The cluster's API server does not answer: {reason}", "Is the cluster up?") from error

    def _read_clock(self, date: str | None) -> None:
        if date is not None:
            ahead_s = parsedate_to_datetime(date).timestamp() + 0.5 - time.time()  # it tells whole seconds
            self._ahead_s = ahead_s if abs(ahead_s) > 2 else 0.0

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._client is None:
                client = await asyncio.to_thread(importlib.import_module, "kubernetes.aio.client")  # it takes seconds
                configuration = client.Configuration()
                await self._sign_in(configuration)
                self._client = client.ApiClient(configuration)
            return self._client

    async def _sign_in(self, configuration: Any) -> None:
        config: Any = importlib.import_module("kubernetes.aio.config")
        yaml: Any = importlib.import_module("yaml")
        try:
            if self._kubeconfig is None and _in_cluster():
                config.load_incluster_config(client_configuration=configuration)
            else:
                file = None if self._kubeconfig is None else str(self._kubeconfig)
                await config.load_kube_config(file, client_configuration=configuration, persist_config=False)
        except (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError) as error:
            raise PlacementError(
                f"There is no way to the cluster: {error}", "Name a kubeconfig that works: kubectl get pods tries it."
            ) from error


def _in_cluster() -> bool:
    """Whether this process runs in a Pod that has an account, and nobody names another."""
    return "KUBECONFIG" not in os.environ and _IN_CLUSTER.exists()


def _refused(code: int, body: bytes, after: str) -> ApiRefused:
    after_s = float(after) if after.isdecimal() else 0.0
    try:
        status = json.loads(body)
        return ApiRefused(code, str(status.get("reason", "")), str(status.get("message", "")), after_s)
    except (ValueError, AttributeError):  # a proxy between, say
        return ApiRefused(code, "", body[:500].decode(errors="replace"), after_s)
