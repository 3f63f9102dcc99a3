"""What a kernel asks its server by way of the agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient

from tests.server.conftest import Machine, Opened, eventually, run

ASK = """
import os, socket
from jupyter_paddle_gpu.core.wire import Call, Hello, Role, encode
def ask(method, **params):
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(os.environ["PADDLE_GPU_AGENT"])
        agent.sendall(encode(Hello(Role.KERNEL, os.getpid())) + encode(Call(1, method, params)))
        print(agent.makefile().readline())
"""


def ask(client: BlockingKernelClient, call: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(client, ASK + f"ask({call})"))
    return answer


def test_a_kernel_asks_changes_and_releases(start: Callable[..., Opened], machine: Machine) -> None:
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "5s"})
    manager, client = start("gpu")
    status = ask(client, "'status'")["result"]
    assert (status["id"], status["state"], status["devices"]) == (manager.kernel_id, "running", ["0"])
    changed = ask(client, "'request', tier='batch', grace='10s', every='10m'")["result"]["request"]
    assert (changed["tier"], changed["grace_s"], changed["every_s"]) == ("batch", 10.0, 600.0)
    refused = ask(client, "'request', gpus=3")
    assert refused["error"] == "3 GPUs were asked for, this machine has 1"
    assert refused["next_step"]
    assert "no call 'dance'" in ask(client, "'dance'")["error"]
    assert ask(client, "'release'")["result"]["request"]["gpus"] == 0
    eventually(lambda: not machine.holders())
    client.wait_for_ready(timeout=30)
    assert ask(client, "'status'")["result"]["devices"] == []
    assert ask(client, "'release'")["result"]["request"]["gpus"] == 0, "it may be repeated"
