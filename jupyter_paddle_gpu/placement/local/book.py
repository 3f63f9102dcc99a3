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
import fcntl
import os
import pwd
import stat
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from jupyter_paddle_gpu.core import queue
from jupyter_paddle_gpu.core.device import Device, DeviceKind
from jupyter_paddle_gpu.core.errors import PlacementError, RequestError
from jupyter_paddle_gpu.core.queue import Claim
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.tiers import Ladder
from jupyter_paddle_gpu.placement.local import claimfile
from jupyter_paddle_gpu.placement.local.machine import Machine, read_machine


class Book:
    """The book in ``directory``, made when it is not there. May be used from several threads and processes.

    Raises PlacementError when the directory is not safe to share or cannot be made.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        _make_shared(directory)
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
        kind = self.devices()[0].kind
        return "CPU slot" if kind is DeviceKind.CPU else kind.value

    def claims(self) -> list[Claim]:
        """Return the live claims, each with who displaces it."""
        with self.locked():
            return self.claims_locked()

    def claims_locked(self) -> list[Claim]:
        """Return the live claims. The caller is inside ``locked``."""
        claims = [claim for raw in claimfile.read_live(self.directory) if (claim := self._known(raw))]
        by_id = {claim.id: claim for claim in claims}
        for taker in claims:
            for victim in taker.evicts:
                held = by_id.get(victim)
                if held is not None and held.devices and held.priority < taker.priority and taker.preempts:
                    by_id[victim] = dataclasses.replace(held, evicted_by=taker.id)
        return list(by_id.values())

    def _known(self, claim: Claim) -> Claim | None:
        """Take priority and manners from our ladder, not from somebody's file."""
        tier = next((tier for tier in self.ladder() if tier.name == claim.tier), None)
        if tier is None:
            return None
        return dataclasses.replace(claim, priority=tier.priority, preempts=tier.preempts, evicted_by=None)

    def new_claim(self, request: GpuRequest, label: str) -> Claim:
        """Return a waiting claim for a request. Raises RequestError for one that can never be met."""
        if request.gpus < 1:
            raise RequestError(f"A claim on {request.gpus} devices", "Ask for at least one.")
        if request.gpus > len(self.devices()):
            plural = "" if len(self.devices()) == 1 else "s"
            raise RequestError(
                f"{request.gpus} {self.noun}s were asked for, this machine has {len(self.devices())}",
                f"Ask for at most {len(self.devices())} {self.noun}{plural}.",
            )
        tier = self.ladder().get(request.tier)
        return Claim(
            id=uuid.uuid4().hex,
            tier=tier.name,
            priority=tier.priority,
            preempts=tier.preempts,
            gpus=request.gpus,
            since_s=time.time(),
            owner=_account(),
            label=label,
            pid=os.getpid(),
            grace_s=request.grace_s,
        )

    def why(self, claim_id: str) -> str:
        """Return one sentence: what a waiting claim waits for. Empty when it does not wait."""
        return queue.why_waiting(self.claims(), claim_id, self.device_ids, self.noun)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the book's lock: nobody else reads or changes the claims meanwhile. Keep it short."""
        fd = os.open(self.directory / "lock", os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def announce(self) -> None:
        """Move the directory's time, which those who wait look at. The caller is inside ``locked``."""
        marker = self.directory / f".changed-{os.getpid()}-{uuid.uuid4().hex}"
        marker.touch()
        marker.unlink()

    def version(self) -> int:
        """Return a number that moves with every change of the book: cheap, for those who wait."""
        return self.directory.stat().st_mtime_ns


def _make_shared(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise PlacementError(f"{directory} is not a directory", "Remove it, or name another with --book.")
        if status.st_uid == os.geteuid():
            directory.chmod(0o1777)
        elif status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise PlacementError(
                f"{directory} lets everybody remove everybody's claims",
                f"Its owner should run: chmod 1777 {directory}.",
            )
        if not os.access(directory, os.W_OK):
            raise PlacementError(f"{directory} cannot be written", "Ask the administrator to run: chmod 1777 on it.")
    except OSError as error:
        raise PlacementError(f"{directory} cannot be used: {error.strerror}", "Name another with --book.") from None


def _account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())  # containers run under ids without a name
