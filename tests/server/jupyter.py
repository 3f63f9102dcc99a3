"""A real Jupyter server in a process of its own, and what a browser would ask of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

TOKEN = "test-token"
BASE_URL = "/user/ada/"


class NotebookSocket:
    """A browser's websocket to a kernel."""

    def __init__(self, connection: WebSocketClientConnection) -> None:
        self._connection = connection

    async def close(self) -> None:
        """Close it, and wait until it is closed: else its socket lies about until some later test."""
        self._connection.close()
        while await self._connection.read_message() is not None:
            pass

    async def run(self, code: str, patience_s: float = 30.0) -> str:
        """Run a cell; return what it printed, or the message of its error."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": "execute_request",
            "version": "5.3",
            "username": "",
            "session": "s",
        }
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": True, "stop_on_error": True}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        await self._connection.write_message(json.dumps(message))
        return await asyncio.wait_for(self._output(header["msg_id"]), patience_s)

    async def _output(self, request: str) -> str:
        printed, replied, idle = "", False, False
        while not (replied and idle):
            message = json.loads(await self._connection.read_message() or "{}")
            content, kind = message["content"], message["header"]["msg_type"]
            if message["parent_header"].get("msg_id") == request:
                printed += content.get("text") or (content["evalue"] if kind == "error" else "")
                replied = replied or kind == "execute_reply"
                idle = idle or content.get("execution_state") == "idle"
        return printed


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
        try:
            self._wait()
        except BaseException:
            self.kill()
            raise

    def _wait(self) -> None:
        deadline_s = time.monotonic() + 40
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
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
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

    def activity(self, kernel: str) -> str:
        """Return what Jupyter says of a kernel: idle, busy, starting."""
        return str(self.ask("GET", f"api/kernels/{kernel}")["execution_state"])

    def reason(self, kernel: str) -> str:
        """Return why Jupyter says that a kernel is as it is."""
        return str(self.ask("GET", f"api/kernels/{kernel}").get("reason", ""))

    async def connect(self, kernel: str) -> NotebookSocket:
        """Open the websocket of a notebook."""
        url = f"ws://{self.base}api/kernels/{kernel}/channels?token={TOKEN}"
        return NotebookSocket(await websocket_connect(url))

    async def run(self, kernel: str, code: str) -> str:
        """Run one cell as a notebook that has just (re)connected."""
        socket = await self.connect(kernel)
        try:
            return await socket.run(code)
        finally:
            await socket.close()

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it as its user does."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
