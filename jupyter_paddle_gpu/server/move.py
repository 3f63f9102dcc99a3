"""Moving an open notebook to a kernel "Paddle GPU": Jupyter's own session change, asked for by the kernel it leaves."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from jupyter_core.utils import ensure_async

from jupyter_paddle_gpu.core.errors import PlacementError, RequestError, SessionNotFound
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.server.manager import Manager

KERNEL_NAME = "paddle-gpu"
PATIENCE_S = 10.0  # for the cell that asked, to end and show what it says
LOOK_S = 0.1


class Mover:
    """Moves notebooks of one Jupyter server. Runs on the server's event loop."""

    def __init__(self, session_manager: Any, kernel_manager: Any, manager: Manager, log: logging.Logger) -> None:
        self._sessions, self._kernels, self._manager, self._log = session_manager, kernel_manager, manager, log
        self._moves: dict[str, asyncio.Task[None]] = {}
        self._closing = False

    async def begin(self, kernel: str, config: Mapping[str, object]) -> str:
        """Begin to move the notebook of ``kernel`` to one with this request (fields of GpuRequest.from_config), and say
        what will happen. Raises RequestError, SessionNotFound; then nothing has begun."""
        models = await ensure_async(self._sessions.list_sessions())
        found = [model for model in models if model["kernel"]["id"] == kernel]
        if not found:
            raise SessionNotFound(f"No notebook uses the kernel {kernel}", "Open the notebook in JupyterLab first.")
        request = GpuRequest.from_config({key: value for key, value in config.items() if value is not None})
        if request.gpus < 1:
            raise RequestError("A request for 0 GPUs moves nowhere", "Ask for at least one, or stay where you are.")
        await self._manager.check(request)
        self._need_kernelspec()
        if kernel not in self._moves:
            task = asyncio.create_task(self._move(found[0], kernel, config), name=f"paddle-gpu-move-{kernel}")
            self._moves[kernel] = task
            task.add_done_callback(lambda _: self._moves.pop(kernel, None))
        return "the notebook gets the kernel “Paddle GPU”; variables of this kernel do not come along"

    async def close(self, patience_s: float) -> None:
        """Begin no move any more, and wait for those that have begun to start a kernel."""
        self._closing = True
        if self._moves:
            await asyncio.wait(self._moves.values(), timeout=patience_s)

    def _need_kernelspec(self) -> None:
        if KERNEL_NAME not in self._kernels.kernel_spec_manager.find_kernel_specs():
            raise PlacementError(
                f"The kernel {KERNEL_NAME!r} is not installed for this server, or not allowed there",
                "Install jupyter-paddle-gpu in the server's environment and see that its kernelspecs allow it.",
            )

    async def _move(self, session: Mapping[str, Any], old: str, config: Mapping[str, object]) -> None:
        log = self._log
        try:
            await self._until_idle(old)
            if self._closing:
                return
            new = await self._sessions.start_kernel_for_session(
                session["id"], session["path"], session["name"], session["type"], KERNEL_NAME
            )
            await self._manager.change(new, config)
            await self._sessions.update_session(session["id"], kernel_id=new)
            await ensure_async(self._kernels.shutdown_kernel(old))
        except Exception:  # a notebook that could not be moved keeps the kernel it has
            log.exception("The notebook %s could not be moved to a kernel %s", session["path"], KERNEL_NAME)

    async def _until_idle(self, kernel: str) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while self._is_busy(kernel) and time.monotonic() < end_s:  # noqa: ASYNC110  # jupyter_server tells by no event
            await asyncio.sleep(LOOK_S)

    def _is_busy(self, kernel: str) -> bool:
        return not self._closing and bool(self._kernels.kernel_model(kernel)["execution_state"] == "busy")
