"""The sessions of this account's running Jupyter servers, as the servers tell of them."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_paddle_gpu.core.codec import from_plain
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.telemetry import KernelSample, Reading

PATIENCE_S = 2.0
AGAIN_S = 2.0  # after a stream that broke


@dataclass(frozen=True)
class Kernel:
    """One session: ``view`` as REST shows it, and what its kernel has said of itself (None: nothing)."""

    view: Mapping[str, Any]
    said: KernelSample | None


class Server:
    """One running Jupyter server. Its stream is followed in a thread from ``start`` to ``close``."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url if url.endswith("/") else f"{url}/"
        self._token = token
        self._said: dict[str, KernelSample | None] = {}
        self._closed = threading.Event()
        self.told = threading.Event()  # whether the stream has said anything yet

    def start(self) -> None:
        """Begin to follow the stream."""
        threading.Thread(target=self._follow, name="paddle-gpu-top", daemon=True).start()

    def close(self) -> None:
        """Follow it no more; the thread ends with its next line, or with the process."""
        self._closed.set()

    def kernels(self) -> tuple[Kernel, ...]:
        """Return its sessions. Raises OSError and ValueError where it does not answer, or has not our extension."""
        with self._open("paddle-gpu/sessions", {}) as answer:
            views = json.load(answer)
        return tuple(Kernel(view, self._said.get(view["id"])) for view in views)

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                with self._open("paddle-gpu/telemetry", {"Last-Event-ID": "now"}) as stream:
                    for line in stream:
                        self._take(line)
                        if self._closed.is_set():
                            return
            except (OSError, ValueError, WireError):
                pass  # `kernels` says what is wrong with it
            self._closed.wait(AGAIN_S)

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data: "):
            for row in json.loads(line.removeprefix(b"data: ")):
                self._said[row["session"]] = from_plain(Reading, row["reading"]).kernel
            self.told.set()

    def _open(self, path: str, headers: Mapping[str, str]) -> Any:
        asked = urllib.request.Request(self._url + path, headers={"Authorization": f"token {self._token}", **headers})  # noqa: S310  # the url is of a file of the account's own
        return urllib.request.urlopen(asked, timeout=PATIENCE_S if not headers else None)  # noqa: S310


def running() -> list[Server]:
    """Return the servers of this account that run on this machine."""
    from jupyter_server.serverapp import list_running_servers  # half a second, which other subcommands do not pay

    return [Server(server["url"], server["token"]) for server in list_running_servers()]
