"""The Jupyter server extension: configuration, REST, events, and the sessions of a server that was killed."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

from jupyter_server.extension.application import ExtensionApp
from traitlets import Dict, Float, Unicode

from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement import choose
from jupyter_paddle_gpu.server import shelf_handlers
from jupyter_paddle_gpu.server.activity import KernelActivity
from jupyter_paddle_gpu.server.events import SessionEvents
from jupyter_paddle_gpu.server.handlers import routes
from jupyter_paddle_gpu.server.manager import Manager
from jupyter_paddle_gpu.server.metrics import SessionMetrics
from jupyter_paddle_gpu.server.move import Mover
from jupyter_paddle_gpu.server.notebooks import NotebookMemory, bring_back
from jupyter_paddle_gpu.server.provisioner import FIRST_START_S
from jupyter_paddle_gpu.server.stream import TelemetryHandler

ADOPTION_S = 10.0  # the server answers nobody before its kernels are back, but not for longer
LAST_STARTS_S = FIRST_START_S + 2.0  # how long a server that ends waits for kernels that are just starting


class PaddleGpuApp(ExtensionApp):
    """Preemptible GPU kernels: they save, give way and come back."""

    name = "jupyter_paddle_gpu"
    load_other_extensions = True

    lease_s = Float(
        300.0, config=True, help="Seconds that a kernel outlives its server before it saves and gives its GPU back."
    )
    default_request = Dict(
        config=True,
        help='What a kernelspec leaves open, such as {"tier": "notebook", "grace": "60s", "memory": "16Gi"}.',
    )
    snapshots = Unicode(
        "",
        config=True,
        help="Directory for snapshots, as kernels see it; empty: beside the user's Jupyter data.",
    )
    placement = Unicode("local", config=True, help="Where kernels run: local (this machine) or kubernetes.")
    kubernetes = Dict(
        config=True,
        help='The cluster, such as {"namespace": "team", "image": "registry/paddle-gpu:3"}; see KubernetesSettings.',
    )

    def initialize_settings(self) -> None:
        """Configure this process's sessions, and tell Jupyter what happens to them."""
        manager = Manager.of_process()
        manager.settings = dataclasses.replace(
            manager.settings,
            lease_s=self.lease_s,
            default_request=GpuRequest.from_config(self.default_request),
            snapshots=Path(self.snapshots).expanduser() if self.snapshots else None,
            adoptable=True,
        )
        manager.place_by(choose.by_name(self.placement, self.kubernetes))
        server: Any = self.serverapp
        events = SessionEvents(server.event_logger, self.log, server.io_loop.add_callback)
        activity = KernelActivity(server.kernel_manager, server.io_loop)
        for observer in (events.observe, activity.observe, SessionMetrics().observe):
            manager.observe(observer)
        NotebookMemory(server.session_manager, manager)
        self.settings["paddle_gpu_mover"] = Mover(server.session_manager, server.kernel_manager, manager, self.log)
        self._adopt(manager, server, activity)

    def _adopt(self, manager: Manager, server: Any, activity: KernelActivity) -> None:
        records = manager.claim_orphans()
        if not records:
            return
        work = bring_back(records, server.kernel_manager, server.session_manager, activity, self.log)
        loop: asyncio.AbstractEventLoop = server.io_loop.asyncio_loop
        if loop.is_running():
            server.io_loop.add_callback(lambda: work)
        else:
            # Before the first request: a notebook that asks for its kernel now must find it, or gives it up.
            loop.run_until_complete(asyncio.wait({loop.create_task(work)}, timeout=ADOPTION_S))

    async def stop_extension(self) -> None:
        """Let the kernels that are being started start, so that Jupyter shuts them down with the others.

        Its shutdown fails at one that is still starting, or whose start has failed, and the server then never ends;
        where it has no other kernels it leaves the new one behind.
        """
        await self.settings["paddle_gpu_mover"].close(LAST_STARTS_S)
        server: Any = self.serverapp
        starting: dict[str, asyncio.Task[None]] = getattr(server.kernel_manager, "_pending_kernels", {})
        if starting:
            await asyncio.wait(starting.values(), timeout=LAST_STARTS_S)
        for kernel in [kernel for kernel in starting if kernel not in server.kernel_manager]:
            del starting[kernel]

    def initialize_handlers(self) -> None:
        """See ExtensionApp."""
        self.handlers.extend([*routes(""), *shelf_handlers.routes(""), ("/paddle-gpu/telemetry", TelemetryHandler)])
