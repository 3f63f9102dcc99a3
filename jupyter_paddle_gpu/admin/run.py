"""`jupyter paddle-gpu run -- COMMAND`: a job that gets a GPU of this machine by priority, and gives it up likewise."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jupyter_paddle_gpu.admin.options import add_book_option
from jupyter_paddle_gpu.core.device import environment_of
from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.units import format_duration
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import HeldLease, Ticket

EXIT_CANCELLED = 130  # 128 + SIGINT, as shells say it
EXIT_NOT_FOUND = 127
LOOK_S = 0.1
REPORT_S = 0.5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "run",
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
                print("Cancelled: the request is withdrawn.", file=sys.stderr)
                return EXIT_CANCELLED
            lease = HeldLease.attach(book.directory, ticket.claim_id, ticket.fd)
            return _run(command, lease, received, request.grace_s)
    finally:
        ticket.release()


@contextmanager
def _signals_recorded() -> Iterator[list[int]]:
    """Yield the list that SIGINT and SIGTERM are recorded in: handlers record, loops act."""
    received: list[int] = []

    def record(signum: int, frame: FrameType | None) -> None:
        received.append(signum)

    previous = {signum: signal.signal(signum, record) for signum in (signal.SIGINT, signal.SIGTERM)}
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
            print(text, file=sys.stderr, flush=True)
            said = text
    return not received


def _run(command: list[str], lease: HeldLease, received: list[int], grace_s: float) -> int:
    """Run the job in a process group of its own until it ends or its grace is over."""
    environment = {**os.environ, **environment_of(lease.devices)}
    try:
        job = subprocess.Popen(command, env=environment, start_new_session=True)
    except OSError as error:
        print(f"jupyter paddle-gpu: {command[0]} cannot be run: {error.strerror}", file=sys.stderr)
        return EXIT_NOT_FOUND
    kill_at_s: float | None = None
    while True:
        try:
            code = job.wait(LOOK_S)
            break
        except subprocess.TimeoutExpired:
            pass
        while received:
            _signal_group(job, received.pop(0))
        if kill_at_s is None and (notice := lease.eviction()):
            text = f"Evicted by {notice.by}: {format_duration(grace_s)} to the end of the job."
            print(text, file=sys.stderr, flush=True)
            kill_at_s = time.monotonic() + notice.remaining_s
            _signal_group(job, signal.SIGTERM)
        elif kill_at_s is not None and time.monotonic() >= kill_at_s:
            _signal_group(job, signal.SIGKILL)
    _signal_group(job, signal.SIGKILL)  # what the job left behind must not use the GPU that goes back
    return code if code >= 0 else 128 - code


def _signal_group(job: subprocess.Popen[bytes], signum: int) -> None:
    try:
        os.killpg(job.pid, signum)
    except ProcessLookupError:
        return  # it has ended by itself
