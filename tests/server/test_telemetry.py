"""The stream of what agents see, as a browser reads it from a real Jupyter server."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.conftest import Machine, eventually
from tests.server.jupyter import TOKEN, JupyterServer


@pytest.fixture
def server(machine: Machine) -> Iterator[JupyterServer]:
    machine.add_kernelspec("plain", {})
    server = JupyterServer(machine.root, "server")
    yield server
    server.stop()


def events(server: JupyterServer, count: int, mark: str = "") -> tuple[str, list[dict[str, Any]]]:
    """Return the last mark and the rows of the stream's first ``count`` events, then leave."""
    headers = {"Authorization": f"token {TOKEN}"} | ({"Last-Event-ID": mark} if mark else {})
    request = urllib.request.Request(f"http://{server.base}paddle-gpu/telemetry", headers=headers)
    rows: list[dict[str, Any]] = []
    with urllib.request.urlopen(request, timeout=60) as stream:
        for line in stream:
            key, _, value = line.decode().strip().partition(": ")
            if key == "id":
                mark = value
            elif key == "data":
                rows += json.loads(value)
                count -= 1
            if count == 0:
                break
    return mark, rows


def test_the_stream_begins_with_the_history_and_goes_on_after_a_break(server: JupyterServer) -> None:
    kernel = server.ask("POST", "api/kernels", {"name": "plain"})["id"]
    mark, rows = events(server, 2)
    assert {row["session"] for row in rows} == {kernel}
    assert rows[0]["reading"]["host"]["memory_used_bytes"] > 0
    _mark, more = events(server, 1, mark)
    assert more[0]["reading"]["at_s"] > rows[-1]["reading"]["at_s"]
    _mark, everything = events(server, 1, "anothers-7")
    assert everything[: len(rows)] == rows


SCREEN = """
from jupyter_paddle_gpu.kernel.commands.watch import live
live().heard({"shown": True, "browser": "ours"})
"""
CULLING = ("--MappingKernelManager.cull_idle_timeout=3", "--MappingKernelManager.cull_interval=1")


def test_an_idle_kernel_is_culled_while_somebody_looks(machine: Machine) -> None:
    machine.add_kernelspec("plain", {})
    server = JupyterServer(machine.root, "culling", *CULLING)
    try:
        server.ask("POST", "api/kernels", {"name": "plain"})
        request = urllib.request.Request(
            f"http://{server.base}paddle-gpu/telemetry", headers={"Authorization": f"token {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=60) as stream:
            for _line in stream:  # it is being looked at all the time
                if server.ask("GET", "api/kernels") == []:
                    break
                assert server.process.poll() is None
            assert server.ask("GET", "api/kernels") == []
    finally:
        server.stop()


def test_an_idle_kernel_is_culled_while_its_screen_is_told(machine: Machine) -> None:
    machine.add_kernelspec("plain", {})
    server = JupyterServer(machine.root, "culling", *CULLING)
    try:
        kernel = server.ask("POST", "api/kernels", {"name": "plain"})["id"]
        asyncio.run(_show_a_screen(server, kernel))
        eventually(lambda: server.ask("GET", "api/kernels") == [])
    finally:
        server.stop()


async def _show_a_screen(server: JupyterServer, kernel: str) -> None:
    """Open one that is told every second."""
    notebook = await server.connect(kernel)
    try:
        assert await notebook.run("%load_ext jupyter_paddle_gpu") == ""
        assert await notebook.run(SCREEN) == ""
    finally:
        await notebook.close()
