"""REST of snapshots: those of a session or of a notebook, to list, pin and delete; and a session's save and restore."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.utils import url_path_join
from tornado import web

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.server.handlers import SESSION, PaddleGpuHandler
from jupyter_paddle_gpu.server.shelf import Shelf, snapshot_of

SNAPSHOT = r"(?P<snapshot>[\w.-]+)"
PATIENCE_S = 30.0  # for a save; proxies close what takes a minute


class _Shelves(PaddleGpuHandler):
    """What answers with the whole shelf as it is then: see shelf.ShelfView."""

    def shelf(self, session: str | None) -> Shelf:
        """Return the shelf of a session, else of the notebook that the query names. Raises PaddleGpuError."""
        if session is not None:
            launch = self.manager.launch(session)
            return Shelf.of_session(session, launch.cwd, launch.env)
        path = self.get_query_argument("path", "").strip("/")
        if not path:
            raise RequestError("Whose snapshots are meant?", "Name a notebook: ?path=folder/notebook.ipynb.")
        folder = Path(self.settings["kernel_manager"].cwd_for_path(path))
        return Shelf.of_notebook(folder / Path(path).name, os.environ | self.manager.settings.environment())

    async def act(self, session: str | None, action: Callable[[Shelf], object] = lambda shelf: None) -> None:
        """Do something with the shelf in a thread and answer with what is there then."""
        shelf = self.shelf(session)
        await asyncio.to_thread(action, shelf)
        self.answer(await asyncio.to_thread(shelf.view))


class ShelfHandler(_Shelves):
    @web.authenticated
    @authorized
    async def get(self, session: str | None = None) -> None:
        """The snapshots, newest first; none is no error."""
        await self.act(session)


class SnapshotHandler(_Shelves):
    @web.authenticated
    @authorized
    async def patch(self, snapshot: str, session: str | None = None) -> None:
        """Pin (``{"pinned": true}``) or unpin. May be repeated. 404 for a snapshot that is gone."""
        body = self.body()
        if not isinstance(body, dict) or not isinstance(pinned := body.get("pinned"), bool) or len(body) > 1:
            raise RequestError("Only pinned can be changed of a snapshot", 'Send {"pinned": true} or false.')
        await self.act(session, lambda shelf: shelf.pin(snapshot, pinned))

    @web.authenticated
    @authorized
    async def delete(self, snapshot: str, session: str | None = None) -> None:
        """Remove a snapshot; 409 for one that is pinned, 404 for one that is gone."""
        await self.act(session, lambda shelf: shelf.delete(snapshot))


class SaveHandler(PaddleGpuHandler):
    @web.authenticated
    @authorized
    async def post(self, session: str) -> None:
        """Save now, also while a cell runs: the snapshot; 202 where that takes longer, 409 where the kernel refuses."""
        saving = asyncio.ensure_future(self.manager.ask(session, "save", {}))
        done, _ = await asyncio.wait({saving}, timeout=PATIENCE_S)
        if done:
            self.answer(snapshot_of(saving.result()))
            return
        saving.add_done_callback(lambda late: late.cancelled() or late.exception())  # told by the kernel's own log
        self.set_status(202)
        self.answer({"detail": "The save goes on; its snapshot will be the newest in the list."})


class RestoreHandler(PaddleGpuHandler):
    @web.authenticated
    @authorized
    async def post(self, session: str) -> None:
        """Restore ``{"snapshot": name}`` (null: the newest good one), ``"partial": true`` for what fits another model.

        Answers ``{"snapshot", "notes"}``; 409 while a cell runs, or with the differences where nothing was loaded.
        """
        body: Any = self.body() or {}
        if not isinstance(body, dict) or set(body) - {"snapshot", "partial"}:
            raise RequestError("A restore is not asked for like that", 'Send {"snapshot": null, "partial": false}.')
        name, partial = body.get("snapshot"), body.get("partial", False)
        if not isinstance(name, (str, type(None))) or not isinstance(partial, bool):
            raise RequestError("snapshot is a name or null, partial is true or false", "Send them so.")
        answer: Any = await self.manager.ask(session, "restore", {"snapshot": name, "partial": partial})
        self.answer({"snapshot": snapshot_of(answer["snapshot"]), "notes": answer["notes"]})


def routes(base_url: str) -> list[tuple[str, type[PaddleGpuHandler]]]:
    """Return the handlers below the server's ``base_url``."""
    session = url_path_join(base_url, "paddle-gpu", "sessions", SESSION)
    notebook = url_path_join(base_url, "paddle-gpu", "snapshots")
    return [
        (url_path_join(session, "save"), SaveHandler),
        (url_path_join(session, "restore"), RestoreHandler),
        (url_path_join(session, "snapshots"), ShelfHandler),
        (url_path_join(session, "snapshots", SNAPSHOT), SnapshotHandler),
        (notebook, ShelfHandler),
        (url_path_join(notebook, SNAPSHOT), SnapshotHandler),
    ]
