"""A notebook of a real Jupyter server, whose kernel runs in a Pod."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cluster.client import Cluster
from tests.cluster.namespace import Namespace, eventually
from tests.server.jupyter import JupyterServer, NotebookSocket


@asynccontextmanager
async def team(cluster: Cluster) -> AsyncIterator[Namespace]:
    """A namespace that is ready for kernels, with a volume for their snapshots."""
    with tempfile.TemporaryDirectory(prefix="pg-snapshots") as folder:
        volume = Path(folder)
        await asyncio.to_thread(volume.chmod, 0o777)
        namespace = Namespace(cluster.kubeconfig, cluster.image)
        try:
            await namespace.make(volume)
            yield namespace
        finally:
            await namespace.remove()


@asynccontextmanager
async def served(home: Path, namespace: Namespace) -> AsyncIterator[JupyterServer]:
    """A Jupyter server that places its kernels in the namespace; its log is shown where the test fails."""
    server = serve(home, namespace)
    try:
        yield server
    except BaseException:
        print(server.log)
        raise
    finally:
        server.stop()


def serve(home: Path, namespace: Namespace, name: str = "server") -> JupyterServer:
    """Start a Jupyter server that places its kernels in the namespace."""
    configuration = {"placement": "kubernetes", "kubernetes": namespace.configuration(), "snapshots": "/snapshots"}
    folder = home / "config"
    folder.mkdir(exist_ok=True)
    (folder / "jupyter_server_config.json").write_text(json.dumps({"PaddleGpuApp": configuration}))
    return JupyterServer(home, name)


async def opened(server: JupyterServer, kernel: str) -> NotebookSocket:
    """Wait for the kernel and open the notebook's websocket."""

    async def runs() -> bool:
        state = server.state(kernel)
        assert state != "failed", server.ask("GET", f"paddle-gpu/sessions/{kernel}")
        return state == "running"

    await eventually(runs, "the kernel runs", 120)
    return await server.connect(kernel)


async def do(socket: NotebookSocket, code: str) -> str:
    """Run a cell that must end well; return what it printed."""
    printed = await socket.run(f"{code}\nprint('DONE')", 120)
    assert "DONE" in printed, printed
    return printed.replace("DONE", "")


async def losses(socket: NotebookSocket) -> str:
    printed = await do(socket, "print('RESULT', history)")
    return printed.split("RESULT", 1)[1].strip()


async def wait_for_state(server: JupyterServer, kernel: str, state: str) -> None:
    """Wait until the kernel's session is in this state."""

    async def there() -> bool:
        return server.state(kernel) == state

    await eventually(there, f"the session is {state}")


async def nothing_left(namespace: Namespace) -> None:
    """Wait until no Pod and no Secret of a session is in the namespace."""

    async def none() -> bool:
        ours = [pod for pod in await namespace.pods() if not pod["metadata"]["name"].startswith("urgent")]
        return not ours and not await namespace.secrets()

    await eventually(none, "no Pod and no Secret of ours is left")
