"""`jupyter paddle-gpu run -- COMMAND`: a job that gets a GPU of this machine by priority, and gives it up likewise."""

from __future__ import annotations

import argparse
import functools
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jupyter_paddle_gpu.admin.job import CannotRun, Job
from jupyter_paddle_gpu.admin.options import add_book_option
from jupyter_paddle_gpu.core.device import environment_of
from jupyter_paddle_gpu.core.environment import ENV_JOB
from jupyter_paddle_gpu.core.errors import PlacementError, RequestError
from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.units import format_duration
from jupyter_paddle_gpu.language import translated
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import HeldLease, Ticket

EXIT_CANCELLED = 130  # 128 + SIGINT, as shells say it
EXIT_NOT_FOUND = 127
LOOK_S = 0.1
REPORT_S = 0.5
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "run",
        usage="jupyter paddle-gpu run [options] -- COMMAND …",
        help="run a command on GPUs of this machine, by priority",
        description="Wait for GPUs by priority, run a command on them, and return its exit code. "
        "A higher tier takes GPUs from the lowest tier below: that one gets a notice and its grace period.",
    )
    parser.add_argument("--tier", default="batch", help="the tier (default: %(default)s)")
    parser.add_argument("--gpus", type=int, default=1, help="how many GPUs (default: %(default)s)")
    parser.add_argument("--grace", default="60s", help="time to end after a notice (default: %(default)s)")
    parser.add_argument("--label", help="what others see (default: the command)")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not report the waiting")
    add_book_option(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND …", help="what to run")
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise RequestError("There is no command to run", "Write it after --, as in: run --gpus 1 -- python job.py")
    request = GpuRequest.from_config({"gpus": args.gpus, "tier": args.tier, "grace": args.grace})
    book = Book(args.book)
    ticket = Ticket.file(book, request, args.label or shlex.join(command)[:80])
    try:
        with _signals_recorded() as received:
            if not _wait(ticket, received, quiet=args.quiet):
                print(translated("Cancelled: the request is withdrawn."), file=sys.stderr)
                return EXIT_CANCELLED
            lease = HeldLease.attach(book.directory, ticket.claim_id, ticket.fd)
            return _run(command, lease, received, request.grace_s)
    except CannotRun as error:
        _warn(str(error))
        return EXIT_NOT_FOUND
    finally:
        ticket.release()


@contextmanager
def _signals_recorded() -> Iterator[list[int]]:
    """Yield the list that signals to us are recorded in: handlers record, loops act."""
    received: list[int] = []

    def record(signum: int, frame: FrameType | None) -> None:
        received.append(signum)

    previous = {
        signum: signal.signal(signum, record)
        for signum in _FORWARDED
        if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN  # nohup means it
    }
    try:
        yield received
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)


def _wait(ticket: Ticket, received: list[int], *, quiet: bool) -> bool:
    """Wait for the devices and return True; False when a signal came first."""
    said = ""
    never = threading.Event()
    while not ticket.wait(never, timeout_s=REPORT_S):
        if received:
            return False
        text = f"Waiting, place {ticket.position()}: {ticket.why()}"
        if not quiet and text != said and not ticket.devices:
            print(translated(text), file=sys.stderr, flush=True)
            said = text
    return not received


def _run(command: list[str], lease: HeldLease, received: list[int], grace_s: float) -> int:
    """Run the job until it ends or its grace is over, and return its exit code."""
    environment = {**os.environ, **environment_of(lease.devices), ENV_JOB: "1"}
    kill_at_s: float | None = None
    with Job(command, environment, lease.fd, grace_s) as job:
        while (code := job.wait(LOOK_S)) is None:
            while received:
                job.signal(received.pop(0))
            if kill_at_s is None and (notice := _eviction(lease)):
                text = f"Evicted by {notice.by}: {format_duration(grace_s)} to the end of the job."
                print(translated(text), file=sys.stderr, flush=True)
                kill_at_s = time.monotonic() + notice.remaining_s
                job.signal(signal.SIGTERM)
            elif kill_at_s is not None and time.monotonic() >= kill_at_s:
                job.signal(signal.SIGKILL)
        return code


@functools.lru_cache(maxsize=16)
def _warn(text: str) -> None:
    """Say it once."""
    print(f"jupyter paddle-gpu: {translated(text)}", file=sys.stderr, flush=True)


def _eviction(lease: HeldLease) -> EvictionNotice | None:
    """Return the notice if there is one. A book that is lost ends no job that runs."""
    try:
        return lease.eviction()
    except PlacementError as error:
        _warn(f"{error.fault}. The job goes on; nobody can ask for its devices.")
        return None
