"""A real kernel of ours under a plain client, and the agent's end of its line."""

from __future__ import annotations

import json
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

import jupyter_paddle_gpu
from jupyter_paddle_gpu.core.agentspec import ENV_AGENT, ENV_SESSION
from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.wire import Answer, Call, Message, Notice, Ready, decode, encode
from jupyter_paddle_gpu.placement.base import Overview

DEADLINE_S = 60.0
M = TypeVar("M")


class AgentEnd:
    """The agent's end of the line: it speaks the wire, and remembers what the kernel said.

    ``view`` is what it answers to calls, as a server would that lends no devices (None: nothing).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: queue.Queue[Message] = queue.Queue()
        self.past: list[Message] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        self._connection: socket.socket | None = None
        self.view: Mapping[str, object] | None = None
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connection = connection
            with suppress(ConnectionResetError), connection, connection.makefile("rb") as lines:
                for line in lines:
                    self._hear(decode(line))

    def _hear(self, message: Message) -> None:
        if isinstance(message, Call) and self.view is not None:
            self.send(Answer(message.id, to_plain(Overview()) if message.method == "overview" else self.view))
        self.heard.put(message)

    def send(self, message: Message) -> None:
        self.send_raw(encode(message))

    def send_raw(self, line: bytes) -> None:
        assert self._connection is not None
        self._connection.sendall(line)

    def hang_up(self) -> None:
        assert self._connection is not None
        self._connection.shutdown(socket.SHUT_RDWR)

    def notice(self, cause: Cause = Cause.PREEMPTED, remaining_s: float = 20.0, position: int | None = 2) -> None:
        self.send(Notice(EvictionNotice(cause, remaining_s, position=position)))

    def wait(self, kind: type[M], timeout_s: float = DEADLINE_S) -> M:
        end = time.monotonic() + timeout_s
        while True:
            message = self.heard.get(timeout=max(0.01, end - time.monotonic()))
            self.past.append(message)
            if isinstance(message, kind):
                return message

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(DEADLINE_S)


class Cell:
    """What a client saw of one cell."""

    def __init__(self) -> None:
        self.text, self.data = "", list[Any]()
        self.displays: dict[str, Any] = {}  # what stands in its page now, of what can be changed later
        self.comms: dict[str, list[Any]] = {}  # what was said on each
        self.errors: list[dict[str, Any]] = []
        self.replies: list[dict[str, Any]] = []
        self.idle = 0

    @property
    def error(self) -> str:
        return " | ".join(f"{error['ename']}: {error['evalue']}" for error in self.errors)


class Notebook:
    """One kernel and its only client."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client
        self.cells: dict[str, Cell] = {}
        self.own: list[dict[str, Any]] = []  # what the kernel has published by itself, for no request

    def begin(self, code: str, **options: Any) -> Cell:
        """Send a cell and return at once."""
        cell = self.cells[self.client.execute(code, **options)] = Cell()
        return cell

    def page(self, code: str) -> Cell:
        """Run a cell as a page does, which names it."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": True, "stop_on_error": True}
        message = self.client.session.msg("execute_request", content, metadata={"cellId": "c1"})
        cell = self.cells[message["header"]["msg_id"]] = Cell()
        self.client.shell_channel.send(message)
        self.end(cell)
        return cell

    def read(self, until: Callable[[], bool], timeout_s: float = DEADLINE_S) -> None:
        """Take in what the kernel sends until the condition holds."""
        end = time.monotonic() + timeout_s
        while not until():
            assert time.monotonic() < end, {name: vars(cell) for name, cell in self.cells.items()}
            self._take(self.client.iopub_channel, 0.01)
            self._take(self.client.shell_channel, 0.0)

    def end(self, *cells: Cell, timeout_s: float = DEADLINE_S) -> None:
        """Wait until the cells have their reply and are idle."""
        self.read(lambda: all(cell.replies and cell.idle for cell in cells), timeout_s)

    def run(self, code: str) -> Cell:
        cell = self.begin(code, allow_stdin=False)
        self.end(cell)
        return cell

    def good(self, code: str) -> str:
        """Run a cell that succeeds, and return what it printed."""
        cell = self.run(code)
        assert not cell.errors, cell.error
        return cell.text

    def exit_code(self) -> int | None:
        """Wait for the process's end."""
        process = self.manager.provisioner.process  # type: ignore[union-attr]  # LocalProvisioner
        assert process is not None
        code: int = process.wait(DEADLINE_S)
        return code

    @property
    def pid(self) -> int:
        pid: int = self.manager.provisioner.pid  # type: ignore[union-attr]  # LocalProvisioner
        return pid

    def _take(self, channel: Any, timeout_s: float) -> None:
        try:
            message = channel.get_msg(timeout=timeout_s)
        except queue.Empty:
            return
        cell = self.cells.get(message["parent_header"].get("msg_id"))
        if cell is None:
            if not message["parent_header"]:
                self.own.append(message)
            return
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            cell.text += content["text"]
        elif kind == "error":
            cell.errors.append(content)
        elif kind == "execute_reply":
            cell.replies.append(content)
        elif kind in ("display_data", "execute_result"):
            cell.data.append(content["data"])
            if name := content.get("transient", {}).get("display_id"):
                cell.displays[name] = content["data"]
        elif kind in ("comm_msg", "comm_close"):
            cell.comms.setdefault(content["comm_id"], []).append(content)
        elif kind == "update_display_data":
            name = content["transient"]["display_id"]
            for other in self.cells.values():
                if name in other.displays:
                    other.displays[name] = content["data"]
        elif kind == "status" and content["execution_state"] == "idle":
            cell.idle += 1


@contextmanager
def notebook(
    directory: Path,
    agent: AgentEnd | None = None,
    environ: Mapping[str, str] | None = None,
    module: str = "",
    ready: bool = True,
) -> Iterator[Notebook]:
    """Start a kernel in ``directory`` and be its client; the kernel is ended with the block.

    ``module`` instead of our kernelspec's command. ``ready``: wait until it has told the agent so.
    """
    specs = directory.parent / f"specs-{directory.name}" / "ours"
    specs.mkdir(parents=True, exist_ok=True)
    ours = json.loads((Path(jupyter_paddle_gpu.__file__).parent / "share/kernelspec/kernel.json").read_text())["argv"]
    argv = [sys.executable, *(["-m", module, "-f", "{connection_file}"] if module else ours[1:])]
    (specs / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "ours", "language": "python"}))
    manager = KernelManager(kernel_name="ours", kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(specs.parent)]))
    variables = {**os.environ, "JUPYTER_PADDLE_GPU_SNAPSHOTS": str(directory.parent / "snapshots"), **(environ or {})}
    if agent is not None:
        variables = {ENV_SESSION: "5e551011", **variables, ENV_AGENT: str(agent.path)}
    manager.start_kernel(env=variables, cwd=str(directory))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=DEADLINE_S)
        if agent is not None and ready:
            agent.wait(Ready)
        yield Notebook(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.context.destroy(linger=0)
