"""What a browser does with a notebook: a session by REST, cells by one websocket that stays open all the time."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

KERNEL = "paddle-gpu"
RETRY_S = 1.0


@dataclass
class CellResult:
    """An executed cell: its outputs in nbformat's form, and its error's name (None: it succeeded)."""

    outputs: list[dict[str, Any]] = field(default_factory=list)
    ename: str | None = None
    evalue: str = ""

    @property
    def text(self) -> str:
        return "".join(output.get("text", "") for output in self.outputs)


class Browser:
    """One open notebook, ``path`` under the server's root."""

    def __init__(self, url: str, token: str, path: str) -> None:
        self._url, self._token, self._path = url, token, path
        self._session = uuid.uuid4().hex
        self._socket: WebSocketClientConnection | None = None

    async def open(self) -> None:
        """Start a session with the kernel "Paddle GPU" and connect to it."""
        body = {"path": self._path, "name": self._path, "type": "notebook", "kernel": {"name": KERNEL}}
        model = await self._rest("POST", "api/sessions", body)
        self._id = model["id"]
        address = f"{self._url.replace('http', 'ws', 1)}api/kernels/{model['kernel']['id']}/channels"
        request = HTTPRequest(f"{address}?session_id={self._session}", headers=self._headers)
        self._socket = await websocket_connect(request, max_message_size=2**26)

    async def close(self) -> None:
        """End the session and its kernel."""
        if self._socket is not None:
            self._socket.close()
        await self._rest("DELETE", f"api/sessions/{self._id}")

    async def execute(self, code: str, on_output: Callable[[dict[str, Any]], None] | None = None) -> CellResult:
        """Run a cell and wait for both its reply and its idle status, like a notebook does."""
        parent = await self._send("execute_request", _execute_content(code))
        result, replied, idle = CellResult(), False, False
        while not (replied and idle):
            message = await self._receive()
            if message["parent_header"].get("msg_id") != parent:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "execute_reply":
                replied = True
            elif kind == "status":
                idle = content["execution_state"] == "idle"
            elif (output := _output(kind, content)) is not None:
                _append(result.outputs, output)
                if kind == "error":
                    result.ename, result.evalue = content["ename"], content["evalue"]
                if on_output:
                    on_output(output)
        return result

    async def wait_until_back(self) -> None:
        """Wait until a kernel answers on the websocket that was open all the time."""
        while True:
            parent = await self._send("kernel_info_request", {})
            try:
                while True:
                    message = await asyncio.wait_for(self._receive(), RETRY_S)
                    if message["parent_header"].get("msg_id") == parent and message["channel"] == "shell":
                        return
            except asyncio.TimeoutError:
                continue  # nobody is there yet

    async def where(self) -> dict[str, Any]:
        """Return what the server says of this notebook's session."""
        sessions: list[dict[str, Any]] = await self._rest("GET", "paddle-gpu/sessions")
        return sessions[-1] if sessions else {}

    async def _send(self, kind: str, content: dict[str, Any]) -> str:
        assert self._socket is not None, "open() comes first"  # noqa: S101  # a fault of ours
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": kind,
            "session": self._session,
            "username": "",
            "version": "5.4",
            "date": "",
        }
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        await self._socket.write_message(json.dumps(message))
        return header["msg_id"]

    async def _receive(self) -> dict[str, Any]:
        assert self._socket is not None, "open() comes first"  # noqa: S101  # a fault of ours
        text = await self._socket.read_message()
        if text is None:
            raise ConnectionError("the server closed the websocket")
        message: dict[str, Any] = json.loads(text)
        return message

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self._token}"}

    async def _rest(self, method: str, path: str, body: object = None) -> Any:
        request = HTTPRequest(
            self._url + path,
            method=method,
            headers={**self._headers, "Content-Type": "application/json"},
            body=None if body is None else json.dumps(body),
            request_timeout=120,
        )
        response = await AsyncHTTPClient().fetch(request)
        return json.loads(response.body) if response.body else None


def _execute_content(code: str) -> dict[str, Any]:
    return {
        "code": code,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }


def _output(kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """Return a message's content as an output of a notebook file; None when it is none."""
    if kind == "stream":
        return {"output_type": "stream", "name": content["name"], "text": content["text"]}
    if kind == "error":
        return {"output_type": "error", **{key: content[key] for key in ("ename", "evalue", "traceback")}}
    if kind in ("display_data", "execute_result"):
        output = {"output_type": kind, "data": content["data"], "metadata": content["metadata"]}
        return output | ({"execution_count": content["execution_count"]} if kind == "execute_result" else {})
    return None


def _append(outputs: list[dict[str, Any]], output: dict[str, Any]) -> None:
    """Add an output; text of one stream grows together, as in a notebook."""
    last = outputs[-1] if outputs else {}
    if output["output_type"] == "stream" == last.get("output_type") and last["name"] == output["name"]:
        last["text"] += output["text"]
    else:
        outputs.append(dict(output))
