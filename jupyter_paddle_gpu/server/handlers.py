"""REST under ``/paddle-gpu/``: who runs, who waits and why, and a change or a release of a session's GPU."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.errors import (
    KernelRefused,
    PaddleGpuError,
    RequestError,
    SessionNotFound,
    SnapshotError,
    SnapshotNotFound,
)
from jupyter_paddle_gpu.language import translated
from jupyter_paddle_gpu.server import machine
from jupyter_paddle_gpu.server.manager import Manager

AUTH_RESOURCE = "paddle-gpu"
SESSION = r"(?P<session>[\w-]+)"
# The first that fits; what the machine or the agent cannot do now is 503.
_STATUS = {SessionNotFound: 404, SnapshotNotFound: 404, RequestError: 400, SnapshotError: 409, KernelRefused: 409}


class PaddleGpuHandler(APIHandler):
    """What ours have in common: the manager, errors as ``{message, next_step}``, no trace in the culler's clock."""

    auth_resource = AUTH_RESOURCE
    _track_activity = False

    @property
    def manager(self) -> Manager:
        return Manager.of_process()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer an error as JSON, with the status that the kind of error stands for."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        next_step = ""
        if isinstance(error, PaddleGpuError):
            status_code = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 503)
            message, next_step = error.fault, error.next_step
        elif isinstance(error, web.HTTPError):
            message = error.log_message or error.reason or str(error)
        else:
            message = "The server failed to answer; its log says why"
        self.set_status(status_code)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"message": translated(message), "next_step": translated(next_step)}))

    def log_exception(self, *args: Any) -> None:
        """Log what is a fault of ours; what a user got wrong is told to the user."""
        if not isinstance(args[1], PaddleGpuError):
            super().log_exception(*args)

    def body(self) -> Any:
        """Return the decoded body; None where it is empty. Raises RequestError for one that is no text."""
        try:
            return self.get_json_body()
        except UnicodeDecodeError as error:
            raise RequestError(f"The body is not UTF-8: {error}", "Send JSON.") from None

    def answer(self, value: object) -> None:
        """Finish with a value of ours as JSON."""
        self.finish(json.dumps(to_plain(value)))


class SessionsHandler(PaddleGpuHandler):
    @web.authenticated
    @authorized
    async def get(self) -> None:
        """All sessions of this server."""
        self.answer(self.manager.views())


class SessionHandler(PaddleGpuHandler):
    @web.authenticated
    @authorized
    async def get(self, session: str) -> None:
        """One session."""
        self.answer(self.manager.view(session))

    @web.authenticated
    @authorized
    async def patch(self, session: str) -> None:
        """Change the request: any of ``gpus``, ``memory``, ``tier`` and ``grace``."""
        body = self.body()
        if not isinstance(body, dict):
            raise RequestError("A change needs a JSON object", 'Send for example {"gpus": 1, "grace": "60s"}.')
        self.answer(await self.manager.change(session, body))

    @web.authenticated
    @authorized
    async def delete(self, session: str) -> None:
        """Give the GPU back after a save; the kernel starts again without."""
        self.answer(await self.manager.release(session))


class MoveHandler(PaddleGpuHandler):
    @web.authenticated
    @authorized
    async def post(self, kernel: str) -> None:
        """Move the notebook of a kernel that is not ours to one that is, with a request as for PATCH."""
        body = self.body()
        body = {} if body is None else body
        if not isinstance(body, dict):
            raise RequestError("A move needs a JSON object", 'Send for example {"gpus": 1, "grace": "60s"}.')
        detail = await self.settings["paddle_gpu_mover"].begin(kernel, body)
        self.set_status(202)
        self.answer({"detail": translated(detail)})


class QueueHandler(PaddleGpuHandler):
    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Devices, claims on them in the order of the queue, and tiers of this machine."""
        self.answer(await self.manager.overview())


class MachineHandler(PaddleGpuHandler):
    @web.authenticated
    @authorized
    async def get(self) -> None:
        """What is free, who holds the rest, who waits, what a request of each tier would get: machine.MachineView."""
        overview = await self.manager.overview()
        self.answer(await asyncio.to_thread(machine.look, overview, self.manager.views(), time.time()))


def routes(base_url: str) -> list[tuple[str, type[PaddleGpuHandler]]]:
    """Return the handlers below the server's ``base_url``."""
    return [
        (url_path_join(base_url, "paddle-gpu", "sessions"), SessionsHandler),
        (url_path_join(base_url, "paddle-gpu", "sessions", SESSION), SessionHandler),
        (url_path_join(base_url, "paddle-gpu", "move", r"(?P<kernel>[\w-]+)"), MoveHandler),
        (url_path_join(base_url, "paddle-gpu", "queue"), QueueHandler),
        (url_path_join(base_url, "paddle-gpu", "machine"), MachineHandler),
    ]
