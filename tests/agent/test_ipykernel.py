"""Real kernels under an agent, with real clients: start, interrupt, restart in place, and the last word."""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import KernelConnectionInfo, write_connection_file

from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import (
    Evict,
    Interrupt,
    KernelExited,
    KernelReady,
    KernelStarted,
    Served,
    Start,
    Stop,
)
from tests.agent.harness import Connection, RunningAgent, eventually

Run = Callable[..., RunningAgent]
PATIENCE_S = 30

# Nothing of this kernel runs any more once the file is there: C code that never lets the GIL go.
HOLDS_THE_GIL = "import ctypes, pathlib; pathlib.Path('held').touch(); ctypes.PyDLL(None).sleep(600)"


@dataclass
class Kernel:
    agent: RunningAgent
    server: Connection
    connection_file: Path
    connection: KernelConnectionInfo  # as it was before the kernel, which writes the file again

    @property
    def start(self) -> Start:
        command = (sys.executable, "-m", "jupyter_paddle_gpu.kernel", "-f", str(self.connection_file))
        return Start(command, str(self.connection_file.parent), {}, self.connection_file)

    def client(self) -> BlockingKernelClient:
        client = BlockingKernelClient()
        client.load_connection_info(self.connection)
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE_S)
        return client


@pytest.fixture(params=["plain", "curve"])
def kernel(run_agent: Run, directory: Path, request: pytest.FixtureRequest) -> Iterator[Kernel]:
    keys: dict[str, Any] = {}
    if request.param == "curve":
        public, secret = zmq.curve_keypair()
        keys = {"curve_publickey": public, "curve_secretkey": secret}
    path = str(directory / "connection.json")
    write_connection_file(path, key=b"secret", **keys)
    agent = run_agent(grace_s=2.0)
    kernel = Kernel(agent, agent.connect(), Path(path), json.loads(Path(path).read_text()))
    kernel.server.send(kernel.start)
    kernel.server.wait_for(KernelReady)
    yield kernel
    with contextlib.suppress(BrokenPipeError):  # it has ended by itself
        kernel.server.send(Stop())
    agent.exit_code()


plain = pytest.mark.parametrize("kernel", ["plain"], indirect=True)


@pytest.fixture
def client(kernel: Kernel) -> Iterator[BlockingKernelClient]:
    client = kernel.client()
    yield client
    client.stop_channels()


def answer(client: BlockingKernelClient, msg_id: str) -> dict[str, Any]:
    """Return the execute_reply of a request."""
    while True:
        message: dict[str, Any] = client.get_shell_msg(timeout=PATIENCE_S)
        if message["parent_header"].get("msg_id") == msg_id:
            return message


def published(msg_id: str, *clients: BlockingKernelClient) -> list[list[dict[str, Any]]]:
    """Return what is published to each client about a request until its idle; all listen at the same time."""
    heard: list[list[dict[str, Any]]] = [[] for _ in clients]

    def all_idle() -> bool:
        for client, messages in zip(clients, heard, strict=True):
            with contextlib.suppress(queue.Empty):
                message = client.get_iopub_msg(timeout=0.02)
                if message["parent_header"].get("msg_id") == msg_id:
                    messages.append(message)
        return all(messages and messages[-1]["content"].get("execution_state") == "idle" for messages in heard)

    eventually(all_idle, "idle for every client")
    return heard


def hold_the_gil(kernel: Kernel, client: BlockingKernelClient) -> str:
    """Run the cell; return its message id once it holds the GIL."""
    msg_id: str = client.execute(HOLDS_THE_GIL)
    eventually(kernel.connection_file.with_name("held").exists, "the GIL is held")
    return msg_id


def wait_for_text(client: BlockingKernelClient, text: str) -> None:
    while True:
        message: dict[str, Any] = client.get_iopub_msg(timeout=PATIENCE_S)
        if text in message["content"].get("text", ""):
            return


@plain
def test_interrupt(kernel: Kernel, client: BlockingKernelClient) -> None:
    msg_id = client.execute("import time; print('sleeping', flush=True); time.sleep(600)")
    wait_for_text(client, "sleeping")
    kernel.server.send(Interrupt())
    assert answer(client, msg_id)["content"]["ename"] == "KeyboardInterrupt"


@plain
def test_restart_in_place_keeps_the_clients_connection(kernel: Kernel, client: BlockingKernelClient) -> None:
    client.execute("import time; time.sleep(600)")  # busy: a restart does not wait for it
    kernel.server.send(kernel.start)
    kernel.server.wait_for(KernelStarted)
    kernel.server.wait_for(KernelReady)
    client.wait_for_ready(timeout=PATIENCE_S)
    assert answer(client, client.execute("1 + 1"))["content"]["status"] == "ok"


@plain
def test_a_kernel_that_ends_itself_is_reported_and_starts_again(kernel: Kernel, client: BlockingKernelClient) -> None:
    client.execute("import os; os._exit(3)")
    assert kernel.server.wait_for(KernelExited).exit_code == 3
    kernel.server.send(kernel.start)
    kernel.server.wait_for(KernelReady)


def test_the_last_word_for_a_cell_whose_c_code_holds_the_gil(kernel: Kernel, client: BlockingKernelClient) -> None:
    onlooker = kernel.client()
    msg_id = hold_the_gil(kernel, client)
    began_s = time.monotonic()
    kernel.server.send(Evict(EvictionNotice(Cause.PREEMPTED, 1.5, "job.py (urgent)", 2)))

    assert kernel.server.wait_for(Served).outcome is SaveOutcome.FAILED
    reply = answer(client, msg_id)
    text = "nothing saved: the kernel did not answer within 1.5 s and was killed, waiting for a GPU, position 2"
    assert reply["content"]["ename"] == "Evicted"
    assert reply["content"]["evalue"] == text
    for messages in published(msg_id, client, onlooker):
        error, idle = messages[-2:]
        assert (error["msg_type"], error["content"]["evalue"]) == ("error", text)
        assert idle["content"] == {"execution_state": "idle"}
    assert kernel.agent.exit_code() == 143
    assert time.monotonic() - began_s < 6.0
    onlooker.stop_channels()


@plain
def test_a_request_that_waits_in_its_client_is_refused_too(kernel: Kernel, client: BlockingKernelClient) -> None:
    msg_id = hold_the_gil(kernel, client)
    kernel.server.send(Evict(EvictionNotice(Cause.PREEMPTED, 1.0)))
    assert answer(client, msg_id)["content"]["ename"] == "Evicted"
    late = client.execute("print('too late')")
    reply = answer(client, late)["content"]
    assert reply["evalue"].startswith("not run: ")


@plain
def test_no_last_word_where_the_kernel_has_answered(kernel: Kernel, client: BlockingKernelClient) -> None:
    msg_id = client.execute("import time; print('computing', flush=True); time.sleep(600)")
    wait_for_text(client, "computing")
    kernel.server.send(Evict(EvictionNotice(Cause.PREEMPTED, 20.0)))
    assert kernel.server.wait_for(Served).outcome is SaveOutcome.NOTHING
    assert answer(client, msg_id)["content"]["ename"] == "Evicted"
    assert kernel.agent.exit_code() == 143
    assert "last word" not in kernel.agent.log.read_text()


@plain
def test_no_last_word_for_a_kernel_that_the_user_stopped(kernel: Kernel, client: BlockingKernelClient) -> None:
    hold_the_gil(kernel, client)
    kernel.server.send(Stop())
    assert kernel.agent.exit_code() == 0
    assert "last word" not in kernel.agent.log.read_text()


def test_a_kernel_that_does_not_encrypt_where_it_must_is_ended_with_the_reason(run_agent: Run, directory: Path) -> None:
    """As an old ipykernel does: it passes over the keys in its connection file."""
    agent, plain, path = run_agent(), directory / "plain.json", directory / "connection.json"
    write_connection_file(str(plain), key=b"secret")
    public, secret = (key.decode() for key in zmq.curve_keypair())
    path.write_text(json.dumps({**json.loads(plain.read_text()), "curve_publickey": public, "curve_secretkey": secret}))
    command = (sys.executable, "-m", "jupyter_paddle_gpu.kernel", "-f", str(plain))
    server = agent.connect()
    server.send(Start(command, str(directory), {}, path))
    exited = server.wait_for(KernelExited)
    assert "does not encrypt" in exited.log_tail
    assert "ipykernel 7.3" in exited.log_tail
