"""Snapshots, saves and restores as a sidebar asks for them: a real Jupyter server, a real kernel that keeps values."""

from __future__ import annotations

import asyncio
import time
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.server.conftest import Machine, eventually
from tests.server.jupyter import JupyterServer

LOAD = "%load_ext jupyter_paddle_gpu\nfrom jupyter_paddle_gpu import guard\nepochs = 1\nguard.keep(epochs=epochs)"


@pytest.fixture
def server(machine: Machine) -> Iterator[JupyterServer]:
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "5s"})
    server = JupyterServer(machine.root, "server")
    yield server
    server.stop()


class Opened:
    """A notebook with a kernel that keeps a value, and its snapshots."""

    def __init__(self, server: JupyterServer, path: str = "训练 1.ipynb") -> None:
        self.server = server
        self.path = path
        self.kernel = server.open(path, "gpu")["kernel"]["id"]
        eventually(lambda: server.state(self.kernel) == "running")
        self.run(LOAD)

    def run(self, code: str) -> str:
        return asyncio.run(self.server.run(self.kernel, code))

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return self.server.ask(method, f"paddle-gpu/sessions/{self.kernel}/{path}", body)

    def refused(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        return self.server.refused(method, f"paddle-gpu/sessions/{self.kernel}/{path}", body)


def names(shelf: dict[str, Any]) -> list[str]:
    return [snapshot["name"] for snapshot in shelf["snapshots"]]


@pytest.fixture
def opened(server: JupyterServer) -> Opened:
    return Opened(server)


def test_a_save_is_in_the_list_of_its_session_and_of_its_notebook(server: JupyterServer, opened: Opened) -> None:
    assert opened.ask("GET", "snapshots")["snapshots"] == []
    saved = opened.ask("POST", "save")
    assert (saved["cause"], saved["step"], saved["pinned"], saved["session"]) == ("manual", None, False, opened.kernel)
    shelf = opened.ask("GET", "snapshots")
    assert shelf["snapshots"] == [saved]
    assert saved["path"] == f"{shelf['directory']}/{saved['name']}"
    assert 0 < saved["nbytes"] <= shelf["taken_bytes"] < shelf["disk_free_bytes"] <= shelf["disk_total_bytes"]
    query = urllib.parse.urlencode({"path": opened.path})
    assert names(server.ask("GET", f"paddle-gpu/snapshots?{query}")) == names(shelf)
    server.ask("DELETE", f"api/kernels/{opened.kernel}")
    assert saved["name"] in names(server.ask("GET", f"paddle-gpu/snapshots?{query}")), "also without its kernel"


def test_a_snapshot_is_pinned_unpinned_and_deleted(server: JupyterServer, opened: Opened) -> None:
    name = opened.ask("POST", "save")["name"]
    for pinned in (True, True):
        (snapshot,) = opened.ask("PATCH", f"snapshots/{name}", {"pinned": pinned})["snapshots"]
        assert snapshot["pinned"]
    status, error = opened.refused("DELETE", f"snapshots/{name}")
    assert (status, error) == (409, {"message": f"{name} is pinned", "next_step": "Unpin it first."})
    query = urllib.parse.urlencode({"path": opened.path})
    server.ask("PATCH", f"paddle-gpu/snapshots/{name}?{query}", {"pinned": False})
    assert opened.ask("DELETE", f"snapshots/{name}")["snapshots"] == []
    assert opened.refused("DELETE", f"snapshots/{name}")[0] == 404


def test_a_restore_brings_back_what_was_kept(opened: Opened) -> None:
    older = opened.ask("POST", "save")["name"]
    opened.run("epochs = 2")
    opened.ask("POST", "save")
    opened.run("epochs = 3")
    newest = names(opened.ask("GET", "snapshots"))[0]
    answer = opened.ask("POST", "restore")
    assert (answer["snapshot"]["name"], opened.run("print(epochs)")) == (newest, "2\n")
    answer = opened.ask("POST", "restore", {"snapshot": older})
    assert (answer["snapshot"]["name"], opened.run("print(epochs)")) == (older, "1\n")
    view = opened.server.ask("GET", f"paddle-gpu/sessions/{opened.kernel}")
    assert (view["saved"]["path"].split("/")[-1], view["restored"]["name"]) == (newest, older)
    status, error = opened.refused("POST", "restore", {"snapshot": "none-such"})
    assert (status, older in error["next_step"]) == (409, True)


def test_a_running_cell_is_saved_beside_and_not_restored_under(opened: Opened) -> None:
    with ThreadPoolExecutor() as pool:
        cell = pool.submit(opened.run, "import time\nwhile epochs == 1:\n    time.sleep(0.01)")
        eventually(lambda: opened.server.activity(opened.kernel) == "busy")
        assert opened.ask("POST", "save")["cause"] == "manual"
        status, error = opened.refused("POST", "restore")
        assert (status, error["message"]) == (409, "A cell is running")
        opened.server.ask("POST", f"api/kernels/{opened.kernel}/interrupt")
        cell.result()
    assert opened.ask("POST", "restore")["notes"] == []


def test_what_the_kernel_cannot_do_is_said_with_the_next_step(server: JupyterServer, machine: Machine) -> None:
    kernel = server.ask("POST", "api/kernels", {"name": "gpu"})["id"]
    eventually(lambda: server.state(kernel) == "running")
    status, error = server.refused("POST", f"paddle-gpu/sessions/{kernel}/save")
    assert (status, "%load_ext" in error["next_step"]) == (409, True)
    asyncio.run(server.run(kernel, "%load_ext jupyter_paddle_gpu"))
    status, error = server.refused("POST", f"paddle-gpu/sessions/{kernel}/save")
    assert (status, "nothing to save" in error["message"]) == (409, True)
    ticket = machine.file()
    assert ticket.wait(timeout_s=20)
    eventually(lambda: server.state(kernel) == "waiting")
    status, error = server.refused("POST", f"paddle-gpu/sessions/{kernel}/save")
    assert (status, "No kernel runs" in error["message"]) == (409, True)
    ticket.release()


WRONG = [
    ("GET", "snapshots", None, 400),
    ("GET", "snapshots?path=/", None, 400),
    ("PATCH", "snapshots/000001-state?path=a.ipynb", {"pinned": 1}, 400),
    ("PATCH", "snapshots/000001-state?path=a.ipynb", ["pinned"], 400),
    ("PATCH", "snapshots/000001-state?path=a.ipynb", {"pinned": True, "more": 1}, 400),
    ("PATCH", "snapshots/000001-state?path=a.ipynb", {"pinned": True}, 404),
    ("DELETE", "snapshots/..?path=a.ipynb", None, 404),
    ("GET", "snapshots/000001-state?path=a.ipynb", None, 405),
    ("GET", "sessions/none/snapshots", None, 404),
    ("POST", "sessions/none/restore", {"snapshot": 3}, 400),
    ("POST", "sessions/none/restore", {"name": "x"}, 400),
    ("POST", "sessions/none/restore", {"partial": "yes"}, 400),
    ("POST", "sessions/none/save", None, 404),
]
SECRET = [
    ("GET", "snapshots?path=a"), ("PATCH", "snapshots/a?path=a"), ("DELETE", "snapshots/a?path=a"),
    ("POST", "sessions/a/save"), ("POST", "sessions/a/restore"), ("GET", "machine"), ("GET", "telemetry"),
]  # fmt: skip


def test_what_is_asked_wrongly_or_by_strangers_is_refused(server: JupyterServer) -> None:
    for method, path, body, status in WRONG:
        answered, error = server.refused(method, f"paddle-gpu/{path}", body)
        assert (answered, bool(error["message"])) == (status, True), (method, path, body, error)
    for method, path in SECRET:
        assert server.refused(method, f"paddle-gpu/{path}", token="wrong")[0] == 403, (method, path)


def test_a_notice_is_shown_with_its_end(server: JupyterServer, machine: Machine) -> None:
    kernel = server.ask("POST", "api/kernels", {"name": "gpu"})["id"]
    eventually(lambda: server.state(kernel) == "running")
    asyncio.run(server.run(kernel, "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)"))
    begun_s = time.time()
    ticket = machine.file()
    with ThreadPoolExecutor() as pool:
        pool.submit(ticket.wait, None, 20)
        eventually(lambda: server.state(kernel) == "evicting")
        notice = server.ask("GET", f"paddle-gpu/sessions/{kernel}")["notice"]
        assert (notice["cause"], notice["by"]) == ("preempted", "urgent job (urgent)")
        assert begun_s < notice["ends_s"] < time.time() + 5
    eventually(lambda: server.state(kernel) == "waiting")
    assert server.ask("GET", f"paddle-gpu/sessions/{kernel}")["notice"] is None
    ticket.release()
