"""What crosses the network between this machine and one other, as somebody in between sees it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ALL_PROTOCOLS = 0x0003
_LARGEST_BYTES = 1 << 16


class Heard:
    """The packets so far."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []

    @property
    def whole(self) -> bytes:
        return b"".join(self.packets)


@contextmanager
def listening(ip: str) -> Iterator[Heard]:
    """Hear every packet from and to ``ip`` on all interfaces. For root only."""
    heard, ended, address = Heard(), threading.Event(), socket.inet_aton(ip)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)) as wire:
        wire.settimeout(0.1)

        def listen() -> None:
            while not ended.is_set():
                try:
                    packet = wire.recv(_LARGEST_BYTES)
                except TimeoutError:
                    continue
                if address in packet[:64]:  # in its header
                    heard.packets.append(packet)

        thread = threading.Thread(target=listen, name="wire", daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            ended.set()
            thread.join()
