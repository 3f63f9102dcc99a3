"""Under a real Jupyter server: opened notebooks, REST, events, a server that is killed and one that comes after it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from tests.server.conftest import Machine, begin, eventually, run
from tests.server.jupyter import JupyterServer


@pytest.fixture
def serve(machine: Machine) -> Iterator[Callable[..., JupyterServer]]:
    """Return a function that starts a server of this account; all are stopped at the end."""
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "5s"})
    machine.add_kernelspec("plain", {})
    servers: list[JupyterServer] = []

    def begin(*options: str) -> JupyterServer:
        servers.append(JupyterServer(machine.root, f"server-{len(servers)}", *options))
        return servers[-1]

    yield begin
    for server in servers:
        if server.process.poll() is None:
            server.kill()


def client_of(machine: Machine, kernel: str) -> BlockingKernelClient:
    client = BlockingKernelClient()
    client.load_connection_file(str(machine.runtime / f"kernel-{kernel}.json"))
    client.start_channels()
    eventually(lambda: _answers(client))
    return client


def _answers(client: BlockingKernelClient) -> bool:
    """Whether the kernel answers; a client without a manager takes one that is still starting for dead."""
    try:
        client.wait_for_ready(timeout=10)
    except RuntimeError:
        return False
    return True


def seen(session: dict[str, Any]) -> tuple[str, str, str]:
    return session["id"], session["path"], session["kernel"]["id"]


def test_kernels_of_a_killed_server_are_taken_over(machine: Machine, serve: Callable[..., JupyterServer]) -> None:
    (machine.book / "machine.json").write_text(json.dumps({"gpus": ["0", "1"]}))
    first = serve()
    opened = [first.open("a.ipynb", "gpu"), first.open("训练 1.ipynb", "gpu"), first.open("c.ipynb", "plain")]
    kernels = [session["kernel"]["id"] for session in opened]
    for number, kernel in enumerate(kernels):
        client = client_of(machine, kernel)
        run(client, f"x = {number}")
        client.stop_channels()
    ticket = machine.file()
    assert ticket.wait(timeout_s=20)
    eventually(lambda: "waiting" in [first.state(kernel) for kernel in kernels])
    evicted = next(kernel for kernel in kernels if first.state(kernel) == "waiting")
    agents = machine.agents()
    assert len(agents) == 2

    second_while_first_lives = serve()
    assert second_while_first_lives.ask("GET", "api/sessions") == []
    first.kill()
    after = serve()
    assert sorted(map(seen, after.ask("GET", "api/sessions"))) == sorted(map(seen, opened))
    assert second_while_first_lives.ask("GET", "api/kernels") == []
    eventually(lambda: sorted(after.state(kernel) for kernel in kernels) == ["running", "running", "waiting"])
    assert machine.agents() == agents, "none was started twice"
    for number, kernel in enumerate(kernels):
        if kernel != evicted:
            assert asyncio.run(after.run(kernel, "print(x)")) == f"{number}\n"
    ticket.release()
    eventually(lambda: after.state(evicted) == "running")
    after.ask("POST", f"api/kernels/{kernels[0]}/restart")
    assert [agent for agent in machine.agents() if agent in agents] == agents
    after.stop()
    eventually(lambda: not machine.agents())
    assert serve().ask("GET", "api/sessions") == [], "what was shut down does not come back"


def test_a_session_evicted_while_there_is_no_server_comes_back_with_the_next(
    machine: Machine, serve: Callable[..., JupyterServer]
) -> None:
    first = serve()
    opened = first.open("a.ipynb", "gpu")
    kernel = opened["kernel"]["id"]
    first.kill()
    ticket = machine.file()
    assert ticket.wait(timeout_s=20), "the agent gives its GPU up without a server too"
    after = serve()
    assert [seen(session) for session in after.ask("GET", "api/sessions")] == [seen(opened)]
    assert after.state(kernel) == "waiting"
    ticket.release()
    eventually(lambda: after.state(kernel) == "running")
    assert asyncio.run(after.run(kernel, "print(1)")) == "1\n"


def test_a_server_killed_before_it_has_told_the_agent_to_start_a_kernel(
    machine: Machine, serve: Callable[..., JupyterServer]
) -> None:
    first = serve()
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(first.open, "a.ipynb", "gpu")
        eventually(machine.agents)
        (agent,) = machine.agents()
        agent.suspend()  # it does not answer yet
        first.kill()
        with suppress(OSError, HTTPException):
            opening.result()
    agent.resume()
    after = serve()
    (kernel,) = (view["id"] for view in after.ask("GET", "paddle-gpu/sessions"))
    eventually(lambda: after.state(kernel) == "running")
    assert machine.agents() == [agent]


def test_damaged_sessions_do_not_cost_the_others(machine: Machine, serve: Callable[..., JupyterServer]) -> None:
    first = serve()
    kernel = first.open("a.ipynb", "gpu")["kernel"]["id"]
    first.kill()
    (good,) = (machine.data / "paddle-gpu" / "sessions").iterdir()
    record = json.loads((good / "session.json").read_text())
    deep, elsewhere, locked = (good.with_name(name) for name in ("deep", "elsewhere", "locked"))
    for directory in (deep, elsewhere, locked):
        directory.mkdir()
    (deep / "session.json").write_text("[" * 200_000)
    (elsewhere / "session.json").write_text(json.dumps({**record, "session": "..", "adoptable": False}))
    (locked / "session.json").write_text(json.dumps({**record, "session": "locked"}))
    (locked / "owner.lock").mkdir()  # cannot be opened, as a file of root could not
    after = serve()
    eventually(lambda: after.state(kernel) == "running")
    assert [view["id"] for view in after.ask("GET", "paddle-gpu/sessions")] == [kernel]


def test_the_culler_spares_who_waits(machine: Machine, serve: Callable[..., JupyterServer]) -> None:
    cull = "--MappingKernelManager.cull_"
    server = serve(f"{cull}idle_timeout=2", f"{cull}interval=1", f"{cull}connected=True")
    evicted = server.open("a.ipynb", "gpu")["kernel"]["id"]
    ticket = machine.file()
    assert ticket.wait(timeout_s=20)
    eventually(lambda: server.state(evicted) == "waiting")
    queued = server.open("b.ipynb", "gpu")["kernel"]["id"]
    time.sleep(5)
    assert {kernel["id"] for kernel in server.ask("GET", "api/kernels")} == {evicted, queued}
    ticket.release()
    eventually(lambda: not server.ask("GET", "api/kernels"))  # they have had a GPU, and nobody has used it


def test_the_culler_of_the_next_server_spares_a_kernel_that_runs_a_cell(
    machine: Machine, serve: Callable[..., JupyterServer]
) -> None:
    first = serve()
    kernel = first.open("a.ipynb", "gpu")["kernel"]["id"]
    client = client_of(machine, kernel)
    begin(client, "import time\ntime.sleep(9)")
    client.stop_channels()
    first.kill()
    after = serve("--MappingKernelManager.cull_idle_timeout=2", "--MappingKernelManager.cull_interval=1")
    time.sleep(4)
    assert after.activity(kernel) == "busy"
    eventually(lambda: not after.ask("GET", "api/kernels"))  # idle at last


@pytest.mark.parametrize(
    "option", ["--MappingKernelManager.transport_encryption=required", "--KernelManager.transport=ipc"]
)
def test_keys_and_transport_outlive_the_server_too(option: str, serve: Callable[..., JupyterServer]) -> None:
    first = serve(option)
    kernel = first.open("a.ipynb", "gpu")["kernel"]["id"]
    assert asyncio.run(first.run(kernel, "x = 5; print(x)")) == "5\n"
    first.kill()
    after = serve(option)
    assert asyncio.run(after.run(kernel, "print(x)")) == "5\n"
    after.ask("POST", f"api/kernels/{kernel}/restart")
    assert asyncio.run(after.run(kernel, "print('x' in dir())")) == "False\n"


def test_an_open_notebook_survives_the_eviction_of_its_kernel(
    machine: Machine, serve: Callable[..., JupyterServer]
) -> None:
    server = serve()
    kernel = server.open("a.ipynb", "gpu")["kernel"]["id"]

    async def use() -> None:
        socket = await server.connect(kernel)
        assert await socket.run("x = 1; print(x)") == "1\n"
        ticket = machine.file()
        assert await asyncio.to_thread(ticket.wait, None, 20)
        await asyncio.to_thread(eventually, lambda: server.state(kernel) == "waiting")
        await asyncio.to_thread(eventually, lambda: server.activity(kernel) == "busy")
        ticket.release()
        await asyncio.to_thread(eventually, lambda: server.activity(kernel) == "idle")
        assert server.state(kernel) == "running"
        await asyncio.sleep(0.3)  # each listener finds a plain kernel by itself
        assert "not defined" in await socket.run("x")
        await socket.close()

    asyncio.run(use())


def test_a_notebook_that_is_opened_without_a_free_gpu_is_connected_and_told_why(
    machine: Machine, serve: Callable[..., JupyterServer]
) -> None:
    """Its cells wait with the kernel, also those of a page that is loaded again, and lose no line of output."""
    ours = [sys.executable, "-m", "jupyter_paddle_gpu.kernel", "-f", "{connection_file}"]
    machine.add_kernelspec("ours", {"gpus": 1, "grace": "5s"}, ours)
    server = serve()
    ticket = machine.file()
    assert ticket.wait(None, 20)
    kernel = server.open("a.ipynb", "ours")["kernel"]["id"]

    async def use() -> None:
        first = await asyncio.wait_for(server.connect(kernel), 5)
        again = await asyncio.wait_for(server.connect(kernel), 5)
        cell = asyncio.create_task(first.run("print(6 * 7)", patience_s=60))
        model = await asyncio.to_thread(server.ask, "GET", f"api/kernels/{kernel}")
        assert model["execution_state"] == "busy"
        await asyncio.to_thread(eventually, lambda: "urgent job" in server.reason(kernel))
        ticket.release()
        assert await cell == "42\n"
        assert await again.run("print(1)") == "1\n"
        await first.close()
        await again.close()
        await asyncio.to_thread(eventually, lambda: server.activity(kernel) == "idle")

    asyncio.run(use())


def test_a_save_goes_on_when_the_server_ends(machine: Machine, serve: Callable[..., JupyterServer]) -> None:
    machine.add_kernelspec("patient", {"gpus": 1, "grace": "20s"})
    server = serve()
    kernel = server.open("a.ipynb", "patient")["kernel"]["id"]
    client = client_of(machine, kernel)
    saved = machine.root / "saved"
    begin(
        client,
        "import signal, time, pathlib\n"
        f"def save(*_):\n    time.sleep(8); pathlib.Path({str(saved)!r}).write_text('whole'); raise SystemExit\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "time.sleep(60)",
    )
    server.stop()
    client.stop_channels()
    assert not saved.exists()
    eventually(saved.exists, 15)
    eventually(lambda: not machine.agents() and not machine.holders())


def test_sessions_are_shown_changed_and_released(machine: Machine, serve: Callable[..., JupyterServer]) -> None:
    server = serve("--PaddleGpuApp.default_request={'grace': '7s'}")
    kernel = server.open("folder.ipynb", "gpu")["kernel"]["id"]
    (view,) = server.ask("GET", "paddle-gpu/sessions")
    assert (view["id"], view["state"], view["devices"], view["device_kind"]) == (kernel, "running", ["0"], "GPU")
    assert view["label"].endswith("notebooks/folder.ipynb")
    queue = server.ask("GET", "paddle-gpu/queue")
    assert [claim["devices"] for claim in queue["claims"]] == [["0"]]
    changed = server.ask("PATCH", f"paddle-gpu/sessions/{kernel}", {"tier": "batch", "memory": "2Gi"})
    assert changed["request"] == {"gpus": 1, "memory_bytes": 2 << 30, "tier": "batch", "grace_s": 5.0, "every_s": None}
    server.ask("DELETE", f"paddle-gpu/sessions/{kernel}")
    eventually(lambda: not machine.holders() and server.state(kernel) == "running")
    assert server.open("other.ipynb", "gpu")
    last = server.ask("PATCH", f"paddle-gpu/sessions/{kernel}", {"gpus": 1})
    assert last["state"] == "running"
    assert last["wanted"]["gpus"] == 1


def test_what_is_refused_says_why_and_what_to_do(serve: Callable[..., JupyterServer]) -> None:
    server = serve()
    kernel = server.open("a.ipynb", "gpu")["kernel"]["id"]
    path = f"paddle-gpu/sessions/{kernel}"
    for status, method, url, body, fault in [
        (404, "GET", "paddle-gpu/sessions/nobody", None, "There is no session nobody"),
        (400, "PATCH", path, {"gpus": 2}, "2 GPUs were asked for, this machine has 1"),
        (400, "PATCH", path, {"gpus": "two"}, "'two' is not a number of GPUs"),
        (400, "PATCH", path, {"tier": "king"}, "There is no tier 'king'"),
        (400, "PATCH", path, {"memory": "much"}, "'much' is not a size"),
        (400, "PATCH", path, {"grace": "2h"}, "A grace of 2 h 00 min is outside 1 s to 1 h"),
        (400, "PATCH", path, {"colour": 1}, "A request has no field 'colour'"),
        (400, "PATCH", path, [1], "A change needs a JSON object"),
    ]:
        code, answer = server.refused(method, url, body)
        assert (code, answer["message"]) == (status, fault)
        assert answer["next_step"]
    assert server.refused("GET", "paddle-gpu/sessions", token="wrong")[0] == 403
    assert "not UTF-8" in server.refused("PATCH", path, b"\xff")[1]["message"]


def test_a_kernel_that_dies_at_start_is_explained(machine: Machine, serve: Callable[..., JupyterServer]) -> None:
    argv = [sys.executable, "-c", "raise ImportError('no module torn')", "{connection_file}"]
    machine.add_kernelspec("broken", {"gpus": 1}, argv)
    server = serve()
    body = {"path": "a.ipynb", "name": "a.ipynb", "type": "notebook", "kernel": {"name": "broken"}}
    status, answer = server.refused("POST", "api/sessions", body)
    assert status == 500
    assert "ImportError: no module torn" in answer["message"]
    assert "ImportError: no module torn" in server.log
    assert server.ask("GET", "paddle-gpu/sessions") == []
    eventually(lambda: not machine.holders())


def test_a_server_ends_also_after_a_kernel_that_could_not_be_started(
    machine: Machine, serve: Callable[..., JupyterServer]
) -> None:
    machine.add_kernelspec("greedy", {"gpus": 9})
    server = serve()
    body = {"path": "a.ipynb", "name": "a.ipynb", "type": "notebook", "kernel": {"name": "greedy"}}
    assert server.refused("POST", "api/sessions", body)[0] == 500
    assert server.open("b.ipynb", "plain")
    server.stop()


@pytest.mark.parametrize("others", [0, 1])
def test_a_kernel_that_is_just_starting_ends_with_its_server(
    others: int, machine: Machine, serve: Callable[..., JupyterServer]
) -> None:
    server = serve()
    for number in range(others):
        server.open(f"{number}.ipynb", "plain")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(server.open, "a.ipynb", "gpu")
        eventually(machine.holders)
        server.stop()
        with suppress(OSError, HTTPException):
            opening.result()
    eventually(lambda: not machine.agents() and not machine.holders())


def test_a_kernel_that_cannot_come_back_says_why(machine: Machine, serve: Callable[..., JupyterServer]) -> None:
    server = serve()
    kernel = server.open("a.ipynb", "gpu")["kernel"]["id"]
    ticket = machine.file()
    assert ticket.wait(timeout_s=20)
    eventually(lambda: server.state(kernel) == "waiting")
    (machine.data / "paddle-gpu" / "sessions" / kernel / "agent.new").mkdir()  # is in the way, as a full disk would be
    ticket.release()
    eventually(lambda: "is failed: The session's agent cannot be started" in server.log)


def test_changes_are_events_of_jupyter(machine: Machine, serve: Callable[..., JupyterServer], tmp_path: Path) -> None:
    config = tmp_path / "config" / "jupyter_server_config.py"
    config.parent.mkdir(exist_ok=True)
    config.write_text(
        "import logging\n"
        f"handler = logging.FileHandler({str(tmp_path / 'events')!r})\n"
        "c.EventLogger.handlers = [handler]\n"
    )
    server = serve()
    kernel = server.open("a.ipynb", "gpu")["kernel"]["id"]
    ticket = machine.file()
    assert ticket.wait(timeout_s=20)
    eventually(lambda: server.state(kernel) == "waiting" and server.ask("GET", f"paddle-gpu/sessions/{kernel}")["why"])
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    states = [event["state"] for event in events if event.get("id") == kernel]
    assert [state for state, before in zip(states, ["", *states], strict=False) if state != before] == [
        "starting", "running", "evicting", "waiting",
    ]  # fmt: skip
    assert f"notebooks/a.ipynb ({kernel}) is waiting" in server.log
    ticket.release()
