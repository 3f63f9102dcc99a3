"""A real agent process, and connections to it that say one thing after the other. Every wait has a deadline."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from jupyter_paddle_gpu.core.agentspec import AgentSpec
from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.wire import Hello, KernelReady, KernelStarted, Message, Role, Start, decode, encode

PATIENCE_S = 30.0
M = TypeVar("M")


def eventually(condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Return when ``condition`` holds; fail with ``what`` when it does not in time."""
    end_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end_s, f"not within {within_s} s: {what}"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def listens(path: Path) -> bool:
    """Whether somebody takes connections there; a socket is bound a little earlier."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


class Connection:
    """One peer of an agent."""

    def __init__(self, path: Path, role: Role) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self._lines = self.socket.makefile("rb")
        self.send(Hello(role, os.getpid()))

    def send(self, message: Message) -> None:
        self.socket.sendall(encode(message))

    def receive(self, within_s: float = PATIENCE_S) -> Message | None:
        """Return the next message; None: the agent has closed."""
        self.socket.settimeout(within_s)
        line = self._lines.readline()
        return decode(line) if line else None

    def wait_for(self, kind: type[M], within_s: float = PATIENCE_S) -> M:
        """Return the next message of a kind; others before it are dropped."""
        end_s = time.monotonic() + within_s
        while True:
            message = self.receive(max(0.01, end_s - time.monotonic()))
            assert message is not None, f"the agent closed before {kind.__name__}"
            if isinstance(message, kind):
                return message

    def rest(self) -> list[Message]:
        """Return everything that still comes until the agent closes."""
        return list(iter(self.receive, None))

    def close(self) -> None:
        self._lines.close()
        self.socket.close()


class RunningAgent:
    """``python -m jupyter_paddle_gpu.agent`` in a directory of its own."""

    def __init__(self, spec: AgentSpec, pass_fds: Sequence[int] = ()) -> None:
        self.spec = spec
        self.log = spec.kernel_log.with_name("agent.log")
        path = spec.kernel_log.with_name("agent.json")
        path.write_text(json.dumps(to_plain(spec)))
        with self.log.open("wb") as log:
            command = [sys.executable, "-m", "jupyter_paddle_gpu.agent", str(path)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, pass_fds=pass_fds)
        self._connections: list[Connection] = []
        eventually(lambda: listens(spec.socket) or self.process.poll() is not None, "the agent listens")

    def connect(self, role: Role = Role.SERVER) -> Connection:
        connection = Connection(self.spec.socket, role)
        self._connections.append(connection)
        return connection

    def start(self, server: Connection, *command: str, **fields: object) -> int:
        """Start a kernel command; return its pid."""
        start = replace(Start(command, str(self.spec.kernel_log.parent)), **fields)  # type: ignore[arg-type]  # of Start
        server.send(start)
        return server.wait_for(KernelStarted).pid

    def python(self, server: Connection, code: str, **fields: object) -> int:
        """Start a Python program as the kernel; return its pid."""
        return self.start(server, sys.executable, "-u", "-c", code, **fields)

    def linked(self, server: Connection, code: str) -> int:
        """Start a program that knows the agent, and wait until it serves notices; return its pid."""
        pid = self.python(server, code)
        server.wait_for(KernelReady)
        return pid

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        return self.process.wait(within_s)

    def output(self) -> str:
        """What the kernel has written so far."""
        return self.spec.kernel_log.read_text() if self.spec.kernel_log.exists() else ""

    def wait_for_output(self, text: str) -> None:
        eventually(lambda: text in self.output(), f"{text!r} in {self.output()!r}\n{self.log.read_text()}")

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory with a short path: a socket's has at most 107 bytes."""
    directory = Path(tempfile.mkdtemp(prefix="pga-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def make_spec(directory: Path, **fields: object) -> AgentSpec:
    spec = AgentSpec("session-1", GpuRequest(gpus=0), (), directory / "agent.sock", directory / "kernel.log")
    return replace(spec, **fields)  # type: ignore[arg-type]  # fields of AgentSpec
