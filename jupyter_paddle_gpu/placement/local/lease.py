"""A place in the queue, and a lease on devices: the two sides of a claim."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time
from pathlib import Path

from jupyter_paddle_gpu.core import queue
from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.queue import Claim
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.local import claimfile
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.changes import LOOK_S, Changes

log = logging.getLogger(__name__)


class _Held:
    """What a place in the queue and a lease share: one claim of ours, kept by its locked descriptor."""

    def __init__(self, book: Book, claim: Claim, fd: int) -> None:
        self.book, self._claim, self.fd = book, claim, fd

    @property
    def claim_id(self) -> str:
        return self._claim.id

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices held; empty while waiting."""
        return tuple(device for device in self.book.devices() if device.id in self._claim.devices)

    def change(self, request: GpuRequest) -> None:
        """Use another tier and grace from now on; the devices stay. Raises RequestError for an unknown tier."""
        tier = self.book.ladder().get(request.tier)
        self._write(tier=tier.name, priority=tier.priority, preempts=tier.preempts, grace_s=request.grace_s)

    def _due(self, changes: Changes) -> bool:
        try:
            return changes.due()
        except OSError as error:
            raise PlacementError(
                f"The book of leases {self.book.directory} cannot be read: {error.strerror}", "Request the GPU again."
            ) from error

    def release(self) -> None:
        """Withdraw the claim: devices are free, a place in the queue is given up. May be repeated."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        try:
            with self.book.locked():
                (self.book.directory / (self._claim.id + claimfile.SUFFIX)).unlink(missing_ok=True)
        except PlacementError as error:  # closing gives the devices back all the same
            log.warning("A claim's file is left behind: %s", error)
        finally:
            os.close(fd)

    def _write(self, **fields: object) -> None:
        with self.book.locked():
            self._write_locked(**fields)

    def _write_locked(self, **fields: object) -> None:
        changed = dataclasses.replace(self._claim, **fields)  # type: ignore[arg-type]  # fields of Claim
        if changed != self._claim:
            claimfile.write(self.fd, changed)
            self._claim = changed
            self.book.announce()


class Ticket(_Held):
    """A place in the queue of a book, from ``Ticket.file`` to ``release``; after ``wait`` it holds devices."""

    @classmethod
    def file(cls, book: Book, request: GpuRequest, label: str) -> Ticket:
        """Queue for a request. Raises RequestError for one that can never be met."""
        claim = book.new_claim(request, label)
        with book.locked():
            fd = claimfile.create(book.directory, claim)
            book.announce()
        return cls(book, claim, fd)

    def poll(self) -> bool:
        """Take the devices if it is our turn; name those who must give way. Return whether we hold them."""
        if self._claim.devices:
            return True
        with self.book.locked():
            claims = self.book.claims_locked()
            try:
                mine = queue.take_turn(claims, self.claim_id, self.book.device_ids)
            except KeyError:
                raise PlacementError(
                    f"The claim {self.claim_id} was removed from the book {self.book.directory}",
                    "Request the GPU again.",
                ) from None
            self._write_locked(devices=mine.devices, evicts=mine.evicts)
        return bool(mine.devices)

    def wait(self, cancelled: threading.Event | None = None, timeout_s: float | None = None) -> tuple[Device, ...]:
        """Block until the devices are ours and return them; empty when ``cancelled`` was set or the time is over (the
        claim is then still there: release it). Raises PlacementError when the book is lost."""
        cancelled = cancelled or threading.Event()
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        changes = Changes(self.book.directory)
        while not cancelled.is_set():
            if self._due(changes) and self.poll():
                return self.devices
            if cancelled.wait(LOOK_S) or (end_s is not None and time.monotonic() >= end_s):
                return ()
        return ()

    def hand_over(self) -> None:
        """Leave the claim to the process that has just inherited the descriptor: it keeps, and releases, it."""
        os.close(self.fd)
        self.fd = -1

    def position(self) -> int | None:
        """The 1-based place in the queue; None once devices are held."""
        return queue.position(self.book.claims(), self.claim_id)

    def why(self) -> str:
        """One sentence: what this claim waits for."""
        return self.book.why(self.claim_id)


class HeldLease(_Held):
    """A lease in the process that uses the devices: the agent, which got the claim's descriptor from its starter."""

    def __init__(self, book: Book, claim: Claim, fd: int) -> None:
        super().__init__(book, claim, fd)
        self._changes = Changes(book.directory)
        self._notice: EvictionNotice | None = None

    @classmethod
    def attach(cls, directory: Path, claim_id: str, fd: int) -> HeldLease:
        """Take over the claim whose locked descriptor was inherited. Raises PlacementError where the book has none."""
        book = Book(directory)
        claim = next((claim for claim in book.claims() if claim.id == claim_id), None)
        if claim is None:
            raise PlacementError(f"The claim {claim_id} is not in the book {directory}", "Request the GPU again.")
        lease = cls(book, claim, fd)
        lease._write(pid=os.getpid())
        return lease

    def eviction(self) -> EvictionNotice | None:
        """Return the notice when somebody takes our devices; None: we may stay. Cheap while nothing changes."""
        if self._due(self._changes):
            self._notice = self._read_notice()
        return self._notice

    def _read_notice(self) -> EvictionNotice | None:
        claims = self.book.claims()
        mine = next((claim for claim in claims if claim.id == self.claim_id), None)
        taker = next((claim for claim in claims if mine and claim.id == mine.evicted_by), None)
        if taker is None:
            return None
        by = f"{taker.label or taker.owner} ({taker.tier})"
        return EvictionNotice(Cause.PREEMPTED, self._claim.grace_s, by, self._position_after(claims))

    def position_after_eviction(self) -> int:
        """The place that this session will have in the queue when it comes back."""
        return self._position_after(self.book.claims())

    def _position_after(self, claims: list[Claim]) -> int:
        return queue.position_after_eviction(claims, self.claim_id)
