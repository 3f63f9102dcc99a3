"""One machine of a test's own: its book of leases, its data, a kernel under a plain client, and urgent jobs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

DEADLINE_S = 120.0


class Cell:
    """One executed cell, read to its end: ``text`` is what it printed, ``ename`` its error (None: it succeeded)."""

    def __init__(self) -> None:
        self.text = ""
        self.ename: str | None = None
        self.evalue = ""
        self.idle = False


class Notebook:
    """A kernel "Paddle GPU" driven by a plain blocking client, as scripts and tools do."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        self.manager = KernelManager(kernel_name="paddle-gpu")
        self._environment, self._directory = environment, directory

    def __enter__(self) -> Notebook:
        self.manager.start_kernel(env=self._environment, cwd=str(self._directory))
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=DEADLINE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code: str, on_text: Callable[[str], None] | None = None) -> Cell:
        """Execute ``code`` and wait for its reply and its idle status; ``on_text`` sees what it prints as it comes."""
        cell, parent = Cell(), self.client.execute(code, allow_stdin=False)
        end = time.monotonic() + DEADLINE_S
        while not cell.idle:
            message: dict[str, Any] = self.client.get_iopub_msg(timeout=max(0.1, end - time.monotonic()))
            if message["parent_header"].get("msg_id") == parent:
                self._take(cell, message, on_text)
        reply = self.client.get_shell_msg(timeout=DEADLINE_S)
        while reply["parent_header"].get("msg_id") != parent:
            reply = self.client.get_shell_msg(timeout=DEADLINE_S)
        assert (reply["content"]["status"] == "error") == (cell.ename is not None)
        return cell

    @staticmethod
    def _take(cell: Cell, message: dict[str, Any], on_text: Callable[[str], None] | None) -> None:
        content = message["content"]
        if message["msg_type"] == "stream" and content["name"] == "stdout":
            cell.text += content["text"]
            if on_text:
                on_text(content["text"])
        elif message["msg_type"] == "error":
            cell.ename, cell.evalue = content["ename"], content["evalue"]
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            cell.idle = True

    def wait_until_back(self) -> None:
        """Wait for the kernel that comes after an eviction: the same client, the same ports."""
        self.client.wait_for_ready(timeout=DEADLINE_S)

    def losses(self) -> list[tuple[int, str]]:
        cell = self.run("print('RESULT', history)")
        found: list[tuple[int, str]] = ast.literal_eval(cell.text.split("RESULT", 1)[1].strip())
        return found


def environment(directory: Path) -> dict[str, str]:
    """Return an environment in which everything of ours lies under ``directory``."""
    return {
        **os.environ,
        "JUPYTER_PADDLE_GPU_BOOK": str(directory / "book"),
        "JUPYTER_PADDLE_GPU_SNAPSHOTS": str(directory / "snapshots"),
        "JUPYTER_DATA_DIR": str(directory / "data"),
        "JUPYTER_RUNTIME_DIR": str(directory / "run"),
    }


def urgent_job(environment: dict[str, str], code: str, *options: str) -> subprocess.Popen[str]:
    """Start an urgent job on the machine's only slot, as another person would from a terminal."""
    command = [sys.executable, "-m", "jupyter_paddle_gpu.admin.app", "run", "--tier", "urgent", *options, "--"]
    return subprocess.Popen(
        [*command, sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
