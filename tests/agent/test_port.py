"""An agent that a server on another machine reaches by TCP: who holds its key comes in, and nobody else."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.agentspec import Listen
from jupyter_paddle_gpu.core.wire import Hello, KernelStarted, Message, Role, Start, Stop, decode, encode
from jupyter_paddle_gpu.placement.kubernetes.credentials import new_key
from jupyter_paddle_gpu.placement.tls import shared_key
from tests.agent import programs
from tests.agent.harness import PATIENCE_S, RunningAgent

Run = Callable[..., RunningAgent]


@pytest.fixture
def listen(tmp_path: Path) -> Listen:
    """A free port and a key."""
    pem = tmp_path / "agent.pem"
    pem.write_text(new_key("session-1"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Listen(free.getsockname()[1], pem)


class Line:
    """A connection by TLS with the key in ``pem``."""

    def __init__(self, port: int, pem: Path) -> None:
        raw = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket = shared_key(pem, listens=False).wrap_socket(raw)
        self._lines = self.socket.makefile("rb")
        self.send(Hello(Role.SERVER, os.getpid()))

    def send(self, message: Message) -> None:
        self.socket.sendall(encode(message))

    def receive(self) -> Message | None:
        line = self._lines.readline()
        return decode(line) if line else None

    def close(self) -> None:
        self._lines.close()
        self.socket.close()


def test_a_server_that_holds_the_key_starts_and_stops_the_kernel(run_agent: Run, listen: Listen) -> None:
    agent = run_agent(listen=listen)
    line = Line(listen.port, listen.pem)
    file = agent.spec.kernel_log.parent / "connection" / "kernel.json"
    line.send(Start(("sh", "-c", f"cat {file}; sleep 60"), "/", connection_file=file, connection={"shell_port": 1}))
    assert isinstance(line.receive(), KernelStarted)
    agent.wait_for_output('{"shell_port": 1}')
    assert file.stat().st_mode & 0o077 == 0
    line.send(Stop())
    assert agent.exit_code() == 0
    line.close()


def test_another_key_is_refused(run_agent: Run, listen: Listen, tmp_path: Path) -> None:
    agent = run_agent(listen=listen)
    other = tmp_path / "other.pem"
    other.write_text(new_key("session-1"))
    with pytest.raises(ssl.SSLError):
        Line(listen.port, other)
    still_works(agent)


def test_without_a_key_nothing_is_heard(run_agent: Run, listen: Listen) -> None:
    agent = run_agent(listen=listen)
    with socket.create_connection(("127.0.0.1", listen.port), PATIENCE_S) as plain:
        plain.sendall(encode(Hello(Role.SERVER, 1)) + encode(Stop()))
        while plain.recv(4096):  # TLS says what it misses, and closes
            pass
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    raw = socket.create_connection(("127.0.0.1", listen.port), PATIENCE_S)
    with context.wrap_socket(raw) as keyless:
        keyless.sendall(encode(Hello(Role.SERVER, 1)) + encode(Stop()))
        with suppress(ssl.SSLError, ConnectionResetError):  # one of the ways to be refused
            assert keyless.recv(4096) == b""
    still_works(agent)


def still_works(agent: RunningAgent) -> None:
    server = agent.connect()
    agent.python(server, programs.SLEEP)
    server.send(Stop())
    assert agent.exit_code() == 0


@pytest.mark.parametrize("what", ["no key", "a port in use"])
def test_an_agent_that_cannot_listen_says_why(run_agent: Run, listen: Listen, what: str) -> None:
    with socket.socket() as taken:
        if what == "no key":
            listen.pem.write_text("not a key")
        else:
            taken.bind(("", listen.port))
            taken.listen()
        agent = run_agent(listen=listen)
        assert agent.exit_code() == os.EX_CANTCREAT
    assert ("cannot be used" if what == "no key" else f"cannot listen on port {listen.port}") in agent.log.read_text()
