"""All that is shown at one moment: the machine's devices, who holds them, who waits, and what the kernels say."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from jupyter_paddle_gpu.admin import ps
from jupyter_paddle_gpu.admin.top.servers import Kernel, Server
from jupyter_paddle_gpu.checkpoint.where import snapshot_root
from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.telemetry import GpuSample, HostSample
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.telemetry.gpus import GpuReader
from jupyter_paddle_gpu.telemetry.host import HostReader


@dataclass(frozen=True)
class Scene:
    """``fault``: why no GPU is seen (None: they are); ``notes``: what could not be asked, a sentence each."""

    at_s: float
    host: HostSample
    gpus: tuple[GpuSample, ...]
    fault: str | None
    devices: tuple[Device, ...]
    claims: tuple[ps.Row, ...]
    kernels: tuple[Kernel, ...]
    notes: tuple[str, ...] = ()


class Stage:
    """Looks at the machine again and again, between enter and exit; for one thread."""

    def __init__(self, book: Book, servers: Sequence[Server]) -> None:
        self._book = book
        self._servers = servers
        self._gpus = GpuReader()
        self._host = HostReader(snapshot_root())

    def __enter__(self) -> Stage:
        self._gpus.__enter__()
        for server in self._servers:
            server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        self._gpus.__exit__(kind, error, trace)

    def look(self) -> Scene:
        """Return how things are now. A server that does not answer is named in the notes."""
        at_s, clock_s = time.time(), time.monotonic()
        gpus, fault = self._gpus.read(at_s, clock_s)
        kernels, notes = self._kernels()
        return Scene(
            at_s=at_s,
            host=self._host.read(clock_s),
            gpus=gpus,
            fault=fault,
            devices=self._book.devices(),
            claims=tuple(ps.rows_of(self._book)),
            kernels=kernels,
            notes=notes,
        )

    def _kernels(self) -> tuple[tuple[Kernel, ...], tuple[str, ...]]:
        found: list[Kernel] = []
        notes = []
        for server in self._servers:
            try:
                found += server.kernels()
            except (OSError, ValueError) as error:
                notes.append(f"A Jupyter server is left out: {error}")
        return tuple(found), tuple(notes)
