"""The kernel's ports on this machine, carried to another address; 127.0.0.2 stands for the Pod's."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.placement.kubernetes.relay import PORTS, Relay

POD = "127.0.0.2"
Connection = dict[str, object]


@pytest.fixture
def connection() -> Connection:
    """A connection file's content, with ports that are free."""
    with socket.socket() as a, socket.socket() as b, socket.socket() as c, socket.socket() as d, socket.socket() as e:
        for free in (a, b, c, d, e):
            free.bind(("127.0.0.1", 0))
        ports = [free.getsockname()[1] for free in (a, b, c, d, e)]
    return {"ip": "127.0.0.1", **dict(zip(PORTS, ports, strict=True))}


@asynccontextmanager
async def kernel(port: object, last: bytes = b"") -> AsyncIterator[None]:
    """Who listens in the Pod: sends back what it gets, and ``last`` at the end."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            if last and data.endswith(b"!"):
                writer.write(last)
                break
        writer.close()

    server = await asyncio.start_server(echo, POD, int(str(port)))
    try:
        yield
    finally:
        server.close()


def test_bytes_go_both_ways_and_none_is_lost_at_the_end(connection: Connection) -> None:
    much = b"x" * 10_000_000

    async def play() -> None:
        relay = Relay(connection, POD)
        await relay.open()
        async with kernel(connection["iopub_port"], much):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(str(connection["iopub_port"])))
            writer.write(b"hello!")
            assert await asyncio.wait_for(reader.read(-1), 20) == b"hello!" + much
            writer.close()
        await relay.close()

    asyncio.run(play())


def test_who_comes_before_the_kernel_is_sent_away_and_may_come_again(connection: Connection) -> None:
    async def play() -> None:
        relay = Relay(connection, POD)
        await relay.open()
        port = int(str(connection["shell_port"]))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        async with kernel(port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"again")
            assert await asyncio.wait_for(reader.readexactly(5), 20) == b"again"
            await relay.close()
            assert await asyncio.wait_for(reader.read(), 20) == b"", "closed with the relay"
            writer.close()

    asyncio.run(play())


def test_ports_are_free_again_after_it(connection: Connection) -> None:
    async def play() -> None:
        for _ in range(2):
            relay = Relay(connection, POD)
            await relay.open()
            await relay.close()

    asyncio.run(play())


def test_a_port_in_use_is_named(connection: Connection) -> None:
    async def play() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", int(str(connection["hb_port"]))))
            taken.listen()
            with pytest.raises(PlacementError, match=f"port {connection['hb_port']}"):
                await Relay(connection, POD).open()
        relay = Relay(connection, POD)
        await relay.open()
        await relay.close()

    asyncio.run(play())
