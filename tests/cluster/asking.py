"""A session's way to a Pod by the placement itself, without a server or a kernel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jupyter_paddle_gpu.core.agentspec import SessionFiles
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.base import Order
from jupyter_paddle_gpu.placement.kubernetes.placement import KubernetesPlacement
from jupyter_paddle_gpu.placement.kubernetes.settings import KubernetesSettings
from tests.cluster.namespace import Namespace

NO_GPU = GpuRequest(gpus=0, grace_s=1)


@asynccontextmanager
async def placement(namespace: Namespace, **changed: object) -> AsyncIterator[KubernetesPlacement]:
    """The placement in a namespace; ``changed`` are fields that an administrator writes differently."""
    made = KubernetesPlacement(KubernetesSettings.from_config(namespace.configuration() | changed))
    try:
        yield made
    finally:
        await made.close()


def order(home: Path, session: str = "ab12", request: GpuRequest = NO_GPU) -> Order:
    """What a session asks for."""
    files = SessionFiles(home, home, session)
    files.directory.mkdir(parents=True, exist_ok=True)
    return Order(session, request, files, "a.ipynb", 300.0)
