"""Every test has its own Jupyter directories and its own machine with one GPU; kernels and agents are real."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import Ticket
from jupyter_paddle_gpu.server.manager import Manager

PLAIN_KERNEL = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]


class Machine:
    """The machine and the account of one test."""

    def __init__(self, root: Path, runtime: Path) -> None:
        self.root, self.runtime = root, runtime
        self.data = root / "data"
        self.book = root / "book"
        self.env = {
            "JUPYTER_DATA_DIR": str(self.data),
            "JUPYTER_RUNTIME_DIR": str(runtime),
            "JUPYTER_CONFIG_DIR": str(root / "config"),
            "JUPYTER_PADDLE_GPU_BOOK": str(self.book),
            "IPYTHONDIR": str(root / "ipython"),
            "IPYTHON_HISTORY": "0",
        }
        self.book.mkdir(mode=0o1777)
        (self.book / "machine.json").write_text(json.dumps({"gpus": ["0"]}))

    def add_kernelspec(self, name: str, config: dict[str, object] | None, argv: list[str] = PLAIN_KERNEL) -> None:
        """Install a kernelspec that names our provisioner with ``config``."""
        directory = self.data / "kernels" / name
        directory.mkdir(parents=True)
        stanza = {"provisioner_name": "paddle-gpu-provisioner", "config": config or {}}
        metadata = {"kernel_provisioner": stanza, "supported_encryption": ["curve"]}
        spec = {"argv": argv, "display_name": name, "language": "python", "metadata": metadata}
        (directory / "kernel.json").write_text(json.dumps(spec))

    def file(self, tier: str = "urgent") -> Ticket:
        """Queue for the GPU as another program of this machine would."""
        return Ticket.file(Book(self.book), GpuRequest(tier=tier), f"{tier} job")

    def holders(self) -> list[str]:
        """Return the labels of who holds a device."""
        return [claim.label for claim in Book(self.book).claims() if claim.devices]

    def waiting(self) -> list[str]:
        """Return the labels of who waits."""
        return [claim.label for claim in Book(self.book).claims() if not claim.devices]

    def agents(self) -> list[psutil.Process]:
        """Return the agents of this account that live."""
        parents = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it ends while we look
                if self._is_agent(process.cmdline()):
                    parents[process] = process.ppid()
        pids = {process.pid for process in parents}
        return [process for process, parent in parents.items() if parent not in pids]  # not its own helpers

    def _is_agent(self, command: list[str]) -> bool:
        return "jupyter_paddle_gpu.agent" in command and str(self.root) in command[-1]


def eventually(true: Callable[[], object], patience_s: float = 20.0) -> None:
    """Wait until ``true()`` is so; fail after ``patience_s``."""
    deadline_s = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < deadline_s, "it never came true"
        time.sleep(0.02)


def back(client: BlockingKernelClient) -> None:
    """Wait for a kernel that has come back, and until each of the client's sockets has found it: they try again within
    0.2 s (ZMQ_RECONNECT_IVL and chance), and what a plain kernel prints before that is lost."""
    client.wait_for_ready(timeout=30)
    time.sleep(0.3)


def run(client: BlockingKernelClient, code: str, timeout_s: float = 30.0) -> str:
    """Run a cell and return its printed text, or the last line of its traceback."""
    output: list[str] = []

    def keep(message: dict[str, dict[str, Any]]) -> None:
        content = message["content"]
        output.append(content.get("text") or content.get("evalue") or content.get("data", {}).get("text/plain", ""))

    client.execute_interactive(code, timeout=timeout_s, output_hook=keep)
    return "".join(output)


def reply_to(client: BlockingKernelClient, request: str, timeout_s: float = 30.0) -> dict[str, object]:
    """Return the content of the reply to a request, passing over the replies to others."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        reply = client.get_shell_msg(timeout=max(0.0, deadline_s - time.monotonic()))
        if reply["parent_header"].get("msg_id") == request:
            return dict(reply["content"])


def begin(client: BlockingKernelClient, code: str) -> str:
    """Run a cell, return its id once it has begun to print."""
    request = str(client.execute(f"print('begun')\n{code}"))
    while client.get_iopub_msg(timeout=30)["msg_type"] != "stream":
        pass
    return request


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A directory whose name is short enough for the sockets of kernels."""
    with tempfile.TemporaryDirectory(prefix="pg") as directory:
        yield Path(directory)


@pytest.fixture
def machine(tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine(tmp_path, runtime)
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Manager, "_of_process", None)
    yield machine
    if Manager._of_process is not None:
        Manager._of_process[1].close()
    for agent in machine.agents():
        agent.kill()


@pytest.fixture
def managed() -> Iterator[Callable[[str], KernelManager]]:
    """Return a function that makes a kernel manager; what it opened is closed at the end."""
    made: list[KernelManager] = []

    def make(name: str) -> KernelManager:
        made.append(KernelManager(kernel_name=name))
        return made[-1]

    yield make
    for manager in made:
        manager._close_control_socket()
        manager.context.destroy(linger=0)


Opened = tuple[KernelManager, BlockingKernelClient]


@pytest.fixture
def start(machine: Machine) -> Iterator[Callable[..., Opened]]:
    """Return a function that starts a kernel by name and waits for it; all are shut down at the end."""
    opened: list[Opened] = []

    def begin(name: str, wait: bool = True, **options: object) -> Opened:
        manager = KernelManager(kernel_name=name, **options)
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        opened.append((manager, client))
        if wait:
            client.wait_for_ready(timeout=30)
        return manager, client

    yield begin
    for manager, client in opened:
        client.stop_channels()
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
