"""Who connects to the agent, and what the bad ones cannot do."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable

import pytest

from jupyter_paddle_gpu.agent.peers import MAX_UNREAD_BYTES
from jupyter_paddle_gpu.core.wire import (
    MAX_LINE_BYTES,
    Answer,
    Call,
    Hello,
    KernelReady,
    KernelStarted,
    Message,
    Ready,
    Role,
    Start,
    Stop,
    encode,
)
from tests.agent import programs
from tests.agent.harness import RunningAgent, alive

Run = Callable[..., RunningAgent]


def raw(agent: RunningAgent) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(30)
    connection.connect(str(agent.spec.socket))
    return connection


def closed_by_agent(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def still_works(agent: RunningAgent) -> None:
    server = agent.connect()
    agent.python(server, programs.SLEEP)
    server.send(Stop())
    assert agent.exit_code() == 0


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x00\xff\xfe\n",
        b"[" * 200_000 + b"\n",
        b'{"kind": "Hello", "role": "emperor", "pid": 1}\n',
        b'{"kind": "Hello", "role": ["server"], "pid": 1}\n',
        b'{"kind": ["Hello"]}\n',
        b"null\n",
        b"\n",
        encode(Stop()),
        b"x" * (MAX_LINE_BYTES + 2),
    ],
    ids=["http", "bytes", "deep", "role", "list", "kind", "null", "empty", "no hello", "huge"],
)
def test_a_connection_that_does_not_say_hello_is_closed(run_agent: Run, line: bytes) -> None:
    agent = run_agent()
    with raw(agent) as connection:
        connection.sendall(line)
        assert closed_by_agent(connection)
    still_works(agent)


@pytest.mark.parametrize("role", [Role.SERVER, Role.KERNEL, Role.OBSERVER])
def test_a_peer_that_turns_to_garbage_is_let_go(run_agent: Run, role: Role) -> None:
    agent = run_agent()
    with raw(agent) as connection:
        connection.sendall(encode(Hello(role, 1)) + b"garbage\n" * 100)
        assert closed_by_agent(connection)
    still_works(agent)


def test_messages_of_a_newer_version_are_skipped(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    server.socket.sendall(b'{"kind": "FromTheFuture"}\n' * 100 + b'{"kind": "Stop", "save_s": 0, "gently": true}\n')
    assert alive(agent.python(server, programs.SLEEP))


def test_messages_cut_in_pieces_and_glued_together(run_agent: Run) -> None:
    agent = run_agent()
    server = agent.connect()
    start = encode(Start((sys.executable, "-c", programs.SLEEP), str(agent.spec.kernel_log.parent)))
    for piece in (start[:7], start[7:] + start + start[:5], start[5:]):
        server.socket.sendall(piece)
    for _ in range(3):
        server.wait_for(KernelStarted)


@pytest.mark.parametrize("message", [Start(("true",), "/"), Stop(), Answer(1)])
@pytest.mark.parametrize("role", [Role.KERNEL, Role.OBSERVER])
def test_only_a_server_commands(run_agent: Run, role: Role, message: Message) -> None:
    agent = run_agent()
    server = agent.connect()
    kernel = agent.python(server, programs.SLEEP)
    other = agent.connect(role)
    other.send(message)
    asker = agent.connect(Role.KERNEL)
    asker.send(Call(1, "status"))
    server.wait_for(Call)  # what was sent before has been heard
    assert alive(kernel)


def test_a_peer_that_never_reads_is_let_go_and_blocks_nobody(run_agent: Run) -> None:
    agent = run_agent()
    server, kernel = agent.connect(), agent.connect(Role.KERNEL)
    agent.connect()  # the newest server is the one that is asked, and never reads
    for number in range(MAX_UNREAD_BYTES // 100_000 + 20):
        kernel.send(Call(number, "explain", {"text": "x" * 100_000}))
    assert kernel.wait_for(Answer).error  # it was let go
    agent.python(server, programs.SLEEP)


def test_two_servers_hear_the_same_and_the_newest_answers(run_agent: Run) -> None:
    agent = run_agent()
    first = agent.connect()
    agent.linked(first, programs.SAVES)
    second = agent.connect()
    second.wait_for(KernelReady)
    asker, other = agent.connect(Role.KERNEL), agent.connect(Role.KERNEL)
    asker.send(Call(5, "explain", {"deep": True}))
    other.send(Call(5, "status"))
    calls = [second.wait_for(Call), second.wait_for(Call)]
    assert {call.method for call in calls} == {"explain", "status"}
    assert len({call.id for call in calls}) == 2  # the same number of two kernels is told apart
    for call in calls:
        first.send(Answer(call.id, "forged"))
        second.send(Answer(call.id, call.method))
        second.send(Answer(call.id, "once more"))
    assert asker.wait_for(Answer) == Answer(5, "explain")
    assert other.wait_for(Answer) == Answer(5, "status")


def test_a_call_without_a_server_is_answered_by_the_agent(run_agent: Run) -> None:
    agent = run_agent()
    kernel = agent.connect(Role.KERNEL)
    kernel.send(Call(1, "status"))
    kernel.send(Call(2, "release"))
    status = kernel.wait_for(Answer)
    assert isinstance(status.result, dict)
    assert status.result["state"] == "running"
    assert status.result["server"] is False
    refusal = kernel.wait_for(Answer)
    assert refusal.error
    assert refusal.next_step


def test_a_server_that_goes_before_it_answers(run_agent: Run) -> None:
    agent = run_agent()
    server, kernel = agent.connect(), agent.connect(Role.KERNEL)
    kernel.send(Call(3, "explain"))
    server.wait_for(Call)
    server.close()
    answer = kernel.wait_for(Answer)
    assert answer.id == 3
    assert answer.error


def test_a_server_asks_the_kernel_that_serves(run_agent: Run) -> None:
    agent = run_agent()
    server, deaf, kernel = agent.connect(), agent.connect(Role.KERNEL), agent.connect(Role.KERNEL)
    agent.python(server, programs.SLEEP)
    server.send(Call(4, "save"))
    refusal = server.wait_for(Answer)
    assert (refusal.id, "%load_ext" in refusal.next_step) == (4, True)
    kernel.send(Ready())
    server.wait_for(KernelReady)
    server.send(Call(5, "save", {"deep": True}))
    asked = kernel.wait_for(Call)
    assert (asked.method, asked.params) == ("save", {"deep": True})
    deaf.send(Answer(asked.id, "forged"))
    kernel.send(Answer(asked.id, "saved"))
    assert server.wait_for(Answer) == Answer(5, "saved")
    server.send(Call(6, "save"))
    kernel.wait_for(Call)
    kernel.close()
    gone = server.wait_for(Answer)
    assert (gone.id, bool(gone.error)) == (6, True)


def test_the_socket_is_its_owners_alone(run_agent: Run) -> None:
    agent = run_agent()
    assert stat.S_IMODE(agent.spec.socket.stat().st_mode) == 0o600


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_another_account_is_refused(run_agent: Run) -> None:
    agent = run_agent()
    agent.spec.socket.parent.chmod(0o755)
    agent.spec.socket.chmod(0o666)
    code = "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])"
    line = encode(Hello(Role.SERVER, 1)) + encode(Stop())
    code = f"{code}; s.sendall({line!r}); print(s.recv(1))"
    subprocess.run([sys.executable, "-c", code, str(agent.spec.socket)], capture_output=True)
    still_works(agent)
    assert "it comes from user 65534" in agent.log.read_text()
