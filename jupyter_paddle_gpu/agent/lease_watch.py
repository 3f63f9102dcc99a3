"""The session's lease in the machine's book of leases, looked after by a thread: files may hang, the agent may not."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.request import GpuRequest

logger = logging.getLogger(__name__)

POLL_S = 0.1
RELEASE_S = 2.0  # the process ends after this, which releases it too


class Lease(Protocol):
    """What is needed of placement.local.book.HeldLease."""

    def eviction(self) -> EvictionNotice | None: ...
    def position_after_eviction(self) -> int | None: ...
    def change(self, request: GpuRequest) -> None: ...
    def release(self) -> None: ...


class LeaseWatch:
    """Calls ``on_notice``, from its own thread and once, when the book says that the lease must be given up."""

    def __init__(self, lease: Lease, on_notice: Callable[[EvictionNotice], None]) -> None:
        self._lease = lease
        self._on_notice = on_notice
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def change(self, request: GpuRequest) -> None:
        """Write another tier and grace into the book, some time soon."""
        threading.Thread(target=self._change, args=(request,), name="lease-change", daemon=True).start()

    def release(self) -> None:
        """Give the lease back. Blocks for RELEASE_S at the most."""
        self._stop.set()
        thread = threading.Thread(target=self._lease.release, name="lease-release", daemon=True)
        thread.start()
        thread.join(RELEASE_S)

    def _change(self, request: GpuRequest) -> None:
        try:
            self._lease.change(request)
        except (OSError, PaddleGpuError) as error:
            logger.warning("The request could not be changed: %s", error)

    def _run(self) -> None:
        complained = False
        while not self._stop.wait(POLL_S):
            try:
                notice = self._lease.eviction()
                if notice is not None and notice.position is None:
                    notice = dataclasses.replace(notice, position=self._lease.position_after_eviction())
            except (OSError, PaddleGpuError) as error:
                if not complained:
                    logger.warning("The book of leases cannot be read: %s", error)
                complained = True
                continue
            if notice is not None:
                self._on_notice(notice)
                return
