"""A real Jupyter server in a process of its own, and what a browser would ask of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TOKEN = "test-token"
BASE_URL = "/user/ada/"


class JupyterServer:
    """Runs from ``__init__`` to ``kill`` or ``stop``. ``log`` collects what it prints."""

    def __init__(self, root: Path, name: str, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"127.0.0.1:{port}{BASE_URL}"
        self.log_file = root / f"{name}.log"
        notebooks = root / "notebooks"
        notebooks.mkdir(exist_ok=True)
        command = [
            *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}"),
            *(f"--ServerApp.root_dir={notebooks}", f"--ServerApp.base_url={BASE_URL}"),
            *(f"--IdentityProvider.token={TOKEN}", "--ServerApp.port_retries=0", *options),
        ]
        env = {**os.environ, "JUPYTERHUB_API_TOKEN": "of-the-hub", "JUPYTER_PREFER_ENV_PATH": "1"}
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=env, stdin=subprocess.DEVNULL)
        deadline_s = time.monotonic() + 20
        while not self._answers():
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline_s, self.log
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            self.ask("GET", "api/status")
        except OSError:
            return False
        return True

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def ask(self, method: str, path: str, body: object = None, token: str = TOKEN) -> Any:
        """Return the decoded answer. Raises urllib's HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"token {token}"}
        request = urllib.request.Request(f"http://{self.base}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else None

    def refused(self, method: str, path: str, body: object = None, token: str = TOKEN) -> tuple[int, Any]:
        """Return the status and the decoded body of an answer that is an error."""
        try:
            self.ask(method, path, body, token)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        raise AssertionError(f"{method} {path} was not refused")

    def open(self, notebook: str, kernel: str) -> dict[str, Any]:
        """Open a notebook with a kernel, as JupyterLab does; return Jupyter's session."""
        body = {"path": notebook, "name": Path(notebook).name, "type": "notebook", "kernel": {"name": kernel}}
        session: dict[str, Any] = self.ask("POST", "api/sessions", body)
        return session

    def state(self, kernel: str) -> str:
        """Return the state of our session of a kernel."""
        return str(self.ask("GET", f"paddle-gpu/sessions/{kernel}")["state"])

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it as its user does."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
