"""The connection between a server and an agent breaks, and is there again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.errors import AgentUnreachable
from jupyter_paddle_gpu.server.manager import Manager
from tests.server.conftest import Machine, Opened, eventually, run


@pytest.fixture
def opened(start: Callable[..., Opened], machine: Machine) -> Opened:
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "5s"})
    return start("gpu")


def break_connections() -> int:
    """Cut what connects this process to agents, as a network does; return how many connections there were."""
    cut = 0
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as connection:  # else it is no socket
            if connection.family is socket.AF_UNIX and str(connection.getpeername()).endswith(".sock"):
                connection.shutdown(socket.SHUT_RDWR)
                cut += 1
    return cut


def viewer() -> None:
    """Somebody who looks."""


def test_who_looks_goes_on_seeing(opened: Opened) -> None:
    _, client = opened
    manager = Manager.of_process()
    sight = manager.sight
    sight.begin(viewer)
    asyncio.run(manager.look())
    eventually(lambda: sight.after("")[1])
    assert break_connections() == 1
    mark, _ = sight.after("")
    eventually(lambda: len(sight.after(mark)[1]) > 2)
    run(client, "x = 1")
    assert break_connections() == 1
    assert run(client, "print(x)") == "1\n", "it is the same kernel"


def test_a_question_that_was_lost_is_answered_with_the_reason(opened: Opened) -> None:
    kernel, client = opened
    pid = int(run(client, "%load_ext jupyter_paddle_gpu\nimport os; print(os.getpid())"))

    async def ask() -> None:
        question = asyncio.ensure_future(Manager.of_process().ask(str(kernel.kernel_id), "save", {}))
        await asyncio.sleep(0.3)  # it is on its way to a kernel that does not answer
        break_connections()
        with pytest.raises(AgentUnreachable, match="broke meanwhile"):
            await asyncio.wait_for(question, 20)

    os.kill(pid, signal.SIGSTOP)
    try:
        asyncio.run(ask())
    finally:
        os.kill(pid, signal.SIGCONT)
    assert run(client, "print(1)") == "1\n"
