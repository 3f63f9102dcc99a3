"""Jupyter's own sessions: remembered while a server lives, made again by the server that comes after a crash."""

from __future__ import annotations

import functools
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from jupyter_core.utils import ensure_async

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.server.activity import KernelActivity
from jupyter_paddle_gpu.server.manager import Manager
from jupyter_paddle_gpu.server.record import Notebook, Record


class NotebookMemory:
    """Notes which notebooks use which kernel, at every change: jupyter_server keeps that in memory only, and tells
    nobody of it, hence the wrapped methods."""

    def __init__(self, session_manager: Any, manager: Manager) -> None:
        self._sessions = session_manager
        self._manager = manager
        for name in ("save_session", "update_session", "delete_session"):
            setattr(session_manager, name, self._followed(getattr(session_manager, name)))

    def _followed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = await ensure_async(method(*args, **kwargs))
            await self.note()
            return result

        return wrapper

    async def note(self) -> None:
        """Write down which notebooks use which kernel now."""
        found: defaultdict[str, list[Notebook]] = defaultdict(list)
        for model in await ensure_async(self._sessions.list_sessions()):
            text = {name: str(model[name] or "") for name in ("id", "path", "name", "type")}
            found[model["kernel"]["id"]].append(Notebook(**text))
        await self._manager.note_notebooks({kernel: tuple(sessions) for kernel, sessions in found.items()})


async def bring_back(
    records: list[Record], kernel_manager: Any, session_manager: Any, activity: KernelActivity, log: logging.Logger
) -> None:
    """Give the sessions of a killed server their kernels and notebooks under the same ids.

    The kernel manager starts them as any others; the provisioner finds that they run already.
    """
    for record in records:
        launch = record.launch
        try:
            await kernel_manager.start_kernel(
                kernel_id=record.session, kernel_name=launch.kernel_name, cwd=launch.cwd, env=dict(launch.env)
            )
            activity.adopted(record.session)
            for notebook in record.notebooks:
                row = to_plain(notebook)
                await session_manager.save_session(row.pop("id"), kernel_id=record.session, **row)
        except Exception:  # a kernelspec that is gone, say: the others come back all the same
            log.exception("The kernel of %s could not be taken over", launch.label)
        else:
            log.info("Took over %s (%s) from a server that is no more", launch.label, record.session)
