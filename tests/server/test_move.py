"""``%paddle_gpu request`` in a kernel that is not ours: the notebook stays open and gets one that is."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_core.paths import jupyter_runtime_dir

from tests.server.conftest import Machine, eventually, run
from tests.server.jupyter import JupyterServer
from tests.server.test_jupyter_server import client_of


@pytest.fixture
def server(machine: Machine) -> Iterator[JupyterServer]:
    started = JupyterServer(machine.root, "server")
    yield started
    started.stop()


def test_the_notebook_moves_with_its_request(machine: Machine, server: JupyterServer) -> None:
    before = server.open("训练 1.ipynb", "python3")
    old = before["kernel"]["id"]
    client = client_of(machine, old)
    run(client, "%load_ext jupyter_paddle_gpu")
    text = run(client, "%paddle_gpu request --gpus 1 --grace 45s")
    assert "the notebook gets the kernel “Paddle GPU”" in text
    client.stop_channels()
    eventually(lambda: server.ask("GET", f"api/sessions/{before['id']}")["kernel"]["name"] == "paddle-gpu")
    after = server.ask("GET", f"api/sessions/{before['id']}")
    assert after["path"] == "训练 1.ipynb"
    eventually(lambda: old not in [kernel["id"] for kernel in server.ask("GET", "api/kernels")])
    new = after["kernel"]["id"]
    eventually(lambda: server.state(new) == "running")
    assert server.ask("GET", f"paddle-gpu/sessions/{new}")["request"]["grace_s"] == 45
    client = client_of(machine, new)
    assert "训练 1.ipynb" in run(client, "import os; print(os.environ['JPY_SESSION_NAME'])")
    assert "45 s" in run(client, "%paddle_gpu request --grace 45s")  # now it is ours: changed in place
    client.stop_channels()


def test_a_server_ends_in_the_middle_of_a_move(machine: Machine, server: JupyterServer) -> None:
    kernel = server.open("a.ipynb", "python3")["kernel"]["id"]
    server.ask("POST", f"paddle-gpu/move/{kernel}", {"gpus": 1})
    eventually(lambda: server.ask("GET", "paddle-gpu/sessions"))
    server.stop()
    eventually(lambda: not machine.agents() and not machine.holders())


def test_what_can_never_be_met_leaves_the_notebook_where_it_is(machine: Machine, server: JupyterServer) -> None:
    before = server.open("a.ipynb", "python3")
    client = client_of(machine, before["kernel"]["id"])
    run(client, "%load_ext jupyter_paddle_gpu")
    text = run(client, "%paddle_gpu request --gpus 9")
    client.stop_channels()
    assert "this machine has 1" in text
    assert "by hand" not in text, "another way would not help"
    assert server.ask("GET", f"api/sessions/{before['id']}")["kernel"]["id"] == before["kernel"]["id"]


def test_the_server_s_token_goes_to_no_proxy(machine: Machine, server: JupyterServer) -> None:
    before = server.open("a.ipynb", "python3")
    client = client_of(machine, before["kernel"]["id"])
    run(client, "%load_ext jupyter_paddle_gpu")
    heard: queue.Queue[socket.socket] = queue.Queue()
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        threading.Thread(target=lambda: heard.put(proxy.accept()[0]), daemon=True).start()
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        run(client, f"import os; os.environ.update(http_proxy={address!r}, HTTP_PROXY={address!r}, no_proxy='')")
        text = run(client, "%paddle_gpu request --gpus 1")
        assert heard.empty()
        socket.create_connection(proxy.getsockname()).close()  # lets the thread end
        heard.get(timeout=10).close()
    client.stop_channels()
    assert "the notebook gets the kernel" in text


def test_where_the_kernel_is_not_to_be_had_nothing_moves(machine: Machine) -> None:
    server = JupyterServer(machine.root, "server", "--KernelSpecManager.allowed_kernelspecs=python3")
    try:
        before = server.open("a.ipynb", "python3")
        client = client_of(machine, before["kernel"]["id"])
        run(client, "%load_ext jupyter_paddle_gpu")
        text = run(client, "%paddle_gpu request --gpus 1")
        client.stop_channels()
        assert "The kernel 'paddle-gpu' is not installed for this server, or not allowed there" in text
        assert server.ask("GET", f"api/sessions/{before['id']}")["kernel"]["name"] == "python3"
    finally:
        server.stop()


def test_without_the_server_extension_it_is_said(machine: Machine) -> None:
    server = JupyterServer(machine.root, "server", "--ServerApp.jpserver_extensions={'jupyter_paddle_gpu': False}")
    try:
        client = client_of(machine, server.open("a.ipynb", "python3")["kernel"]["id"])
        run(client, "%load_ext jupyter_paddle_gpu")
        text = run(client, "%paddle_gpu request --gpus 1")
        client.stop_channels()
        assert "the server extension jupyter_paddle_gpu is not enabled there" in text
        assert "Choose the kernel “Paddle GPU” by hand" in text
    finally:
        server.stop()


def test_a_server_that_wants_a_password_is_told_by_hand(machine: Machine, server: JupyterServer) -> None:
    """Such a server has no token that its kernels could read."""
    before = server.open("a.ipynb", "python3")
    known = Path(jupyter_runtime_dir()) / f"jpserver-{server.process.pid}.json"
    known.write_text(json.dumps({**json.loads(known.read_text()), "token": ""}))
    client = client_of(machine, before["kernel"]["id"])
    run(client, "import os; os.environ.pop('JUPYTERHUB_API_TOKEN', None)\n%load_ext jupyter_paddle_gpu")
    text = run(client, "%paddle_gpu request --gpus 1")
    client.stop_channels()
    assert "it wants a password that this kernel does not know" in text
    assert "Choose the kernel “Paddle GPU” by hand" in text


def test_a_move_without_a_notebook_or_with_bad_input_is_refused(server: JupyterServer) -> None:
    assert server.refused("POST", "paddle-gpu/move/nobody", {})[0] == 404
    kernel = server.open("a.ipynb", "python3")["kernel"]["id"]
    for body, named in (({"gpus": 0}, "0 GPUs"), ({"gpu": 1}, "gpu"), ([], "object"), ({"grace": "x"}, "'x'")):
        status, answer = server.refused("POST", f"paddle-gpu/move/{kernel}", body)
        assert status == 400
        assert named in answer["message"]
