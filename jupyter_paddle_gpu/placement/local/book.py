"""The machine's book of leases: a directory that every user of the machine shares.

    lock            held while the book is read and changed
    machine.json    the administrator's word on devices and tiers (optional)
    ID.claim        one claim; locked by its holder as long as it lives (see claimfile)

Nobody writes another's file. Who waits looks at the claims, makes the plan of core.queue, and takes what it grants to
itself; whom it must displace it names in its own claim, where the holder finds it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from jupyter_paddle_gpu.core import queue
from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.errors import PlacementError, RequestError
from jupyter_paddle_gpu.core.queue import Claim
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.tiers import Ladder, Tier
from jupyter_paddle_gpu.core.units import format_memory, format_quantity
from jupyter_paddle_gpu.placement.base import Overview
from jupyter_paddle_gpu.placement.local import claimfile, shared
from jupyter_paddle_gpu.placement.local.machine import Machine, memory_bytes, read_machine

log = logging.getLogger(__name__)


class Book:
    """The book in ``directory``, made when it is not there. May be used from several threads and processes.

    Raises PlacementError when the directory is not safe to share or cannot be made.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shared.make_shared(directory)
        self._machine: Machine | None = None

    @property
    def machine(self) -> Machine:
        """Devices and tiers, read once: a book lives as long as its user does not restart."""
        if self._machine is None:
            self._machine = read_machine(self.directory / "machine.json")
        return self._machine

    def devices(self) -> tuple[Device, ...]:
        """All devices of the machine, held or free."""
        return self.machine.devices

    def ladder(self) -> Ladder:
        """The tiers of this machine."""
        return self.machine.ladder

    @property
    def device_ids(self) -> list[str]:
        return [device.id for device in self.devices()]

    @property
    def noun(self) -> str:
        """What a device of this machine is called: GPU, MIG or CPU slot."""
        return Overview(self.devices()).noun

    def claims(self) -> list[Claim]:
        """Return the live claims, each with who displaces it."""
        with self.locked():
            return self.claims_locked()

    def claims_locked(self) -> list[Claim]:
        """Return the live claims. The caller is inside ``locked``."""
        claims = [claim for raw in claimfile.read_live(self.directory) if (claim := self._known(raw))]
        return queue.with_takers(claims)

    def _known(self, claim: Claim) -> Claim | None:
        """Take priority and manners from our ladder, and devices from our list, not from somebody's file.

        A tier that is not on the ladder (any more) ranks below all: its devices are held all the same. None for a
        claim that holds nothing of this machine, or waits for more than it has and would block those behind for ever.
        """
        lowest = min(tier.priority for tier in self.ladder()) - 1
        tier = next((tier for tier in self.ladder() if tier.name == claim.tier), Tier(claim.tier, lowest, False))
        held = tuple(device for device in self.device_ids if device in claim.devices)
        if claim.gpus > len(self.device_ids) or (claim.devices and not held):
            return None
        return dataclasses.replace(claim, priority=tier.priority, preempts=tier.preempts, devices=held)

    def new_claim(self, request: GpuRequest, label: str) -> Claim:
        """Return a waiting claim for a request. Raises RequestError for one that can never be met."""
        if request.gpus < 1:
            raise RequestError(f"{request.gpus} {self.noun}s were asked for", "Ask for at least one.")
        if request.gpus > len(self.devices()):
            plural = "" if len(self.devices()) == 1 else "s"
            raise RequestError(
                f"{request.gpus} {self.noun}s were asked for, this machine has {len(self.devices())}",
                f"Ask for at most {len(self.devices())} {self.noun}{plural}.",
            )
        if request.memory_bytes is not None and request.memory_bytes > (total := memory_bytes()):
            asked = format_quantity(request.memory_bytes)
            fault = f"{asked} of memory were asked for, this machine has {format_memory(total)}"
            raise RequestError(fault, "Ask for less.")
        tier = self.ladder().get(request.tier)
        return Claim(
            id=uuid.uuid4().hex,
            tier=tier.name,
            priority=tier.priority,
            preempts=tier.preempts,
            gpus=request.gpus,
            since_s=time.time(),
            owner=claimfile.account(os.geteuid()),
            label=claimfile.one_line(label),
            pid=os.getpid(),
            grace_s=request.grace_s,
        )

    def why(self, claim_id: str) -> str:
        """Return one sentence: what a waiting claim waits for. Empty when it does not wait."""
        return self.overview().why(claim_id)

    def overview(self) -> Overview:
        """Return devices, live claims and tiers."""
        return Overview(self.devices(), tuple(self.claims()), tuple(self.ladder()))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the book's lock: nobody else reads or changes the claims meanwhile. Keep it short.

        Raises PlacementError when it cannot be had, and for what the file system refuses inside.
        """
        try:
            with shared.locked(self.directory):
                yield
        except OSError as error:
            raise PlacementError(
                f"The book of leases {self.directory} cannot be used: {error.strerror}",
                "Make room there, or name another directory with --book or JUPYTER_PADDLE_GPU_BOOK.",
            ) from error

    def announce(self) -> None:
        """Move the directory's time, which those who wait look at. The caller is inside ``locked``."""
        marker = self.directory / f".changed-{uuid.uuid4().hex}"
        try:
            marker.touch()
            marker.unlink()
        except OSError as error:  # the disk is full, say: they look again within a second anyway
            log.warning("A change in the book of leases could not be announced: %s", error)
