"""A Jupyter server of the demo's own, on a machine of its own: nobody else's kernels or GPUs are touched."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.where import ENV_BOOK

START_S = 60.0


class DemoServer:
    """A real ``jupyter server`` over ``root``, with one device in its book, from ``with`` to its end.

    ``environment`` is what every process of this machine gets; ``url`` and ``token`` are known inside the with block.
    """

    def __init__(self, root: Path, private: Path) -> None:
        self._root, self._private = root, private
        self.book = Book(private / "book")
        device = self.book.devices()[0]
        (private / "book" / "machine.json").write_text(json.dumps({"gpus": [to_plain(device)]}))
        self.book = Book(private / "book")
        self.token = secrets.token_hex(16)
        self.environment = {
            **os.environ,
            ENV_BOOK: str(private / "book"),
            "JUPYTER_RUNTIME_DIR": str(private / "run"),
            "JUPYTER_DATA_DIR": str(private / "data"),
            "JUPYTER_PADDLE_GPU_SNAPSHOTS": str(private / "snapshots"),
            "FLAGS_cudnn_deterministic": "1",  # on a GPU two runs are equal only so, evicted or not
        }

    def __enter__(self) -> DemoServer:
        log = (self._private / "server.log").open("wb")
        command = [sys.executable, "-m", "jupyter_server", "--ServerApp.port=0", "--ServerApp.open_browser=False"]
        if os.geteuid() == 0:
            command.append("--allow-root")
        environment = {**self.environment, "JUPYTER_TOKEN": self.token}  # not on the command line: others read that
        self._process = subprocess.Popen(command, cwd=self._root, env=environment, stdout=log, stderr=log)
        log.close()
        try:
            self.url = self._wait_for_url()
        except BaseException:
            self._end()
            raise
        return self

    def _wait_for_url(self) -> str:
        end_s = time.monotonic() + START_S
        file = self._private / "run" / f"jpserver-{self._process.pid}.json"
        while time.monotonic() < end_s and self._process.poll() is None:
            if file.exists() and (text := file.read_text()) and _answers(written := json.loads(text)):
                return str(written["url"])
            time.sleep(0.05)
        raise PaddleGpuError("The Jupyter server did not start", f"Its log ends with:\n{self._log_tail()}")

    def _log_tail(self) -> str:
        lines = (self._private / "server.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-15:])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _answers(server: Mapping[str, Any]) -> bool:
    """Whether somebody listens already: the server writes its file before."""
    try:
        socket.create_connection((server["hostname"], server["port"]), timeout=1.0).close()
    except OSError:
        return False
    return True
