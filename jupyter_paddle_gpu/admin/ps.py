"""`jupyter paddle-gpu ps`: who holds the devices of this machine, and who waits."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass

from jupyter_paddle_gpu.admin.options import add_book_option
from jupyter_paddle_gpu.core import queue
from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.display import Table
from jupyter_paddle_gpu.core.queue import Claim
from jupyter_paddle_gpu.core.units import format_duration
from jupyter_paddle_gpu.language import word
from jupyter_paddle_gpu.placement.local.book import Book


@dataclass(frozen=True)
class Row:
    """One claim as people and programs read it. ``position`` is 1-based (None: holds), ``since_s`` a Unix time."""

    state: str
    devices: tuple[str, ...]
    gpus: int
    tier: str
    position: int | None
    owner: str
    label: str
    pid: int
    since_s: float
    why: str


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("ps", help="show who holds the GPUs of this machine, and who waits")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    add_book_option(parser)
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    book = Book(args.book)
    rows = rows_of(book)
    if args.json:
        print(json.dumps({"devices": to_plain(book.devices()), "claims": to_plain(rows)}, ensure_ascii=False))
    else:
        print(table(book, rows, time.time()))
    return 0


def rows_of(book: Book) -> list[Row]:
    """Return the holders in the order of the devices, then the queue in its order."""
    claims = book.claims()
    held = sorted((claim for claim in claims if claim.devices), key=lambda claim: claim.devices)
    return [_row(book, claims, claim) for claim in [*held, *queue.waiting_in_order(claims)]]


def _row(book: Book, claims: list[Claim], claim: Claim) -> Row:
    by = next((taker for taker in claims if taker.id == claim.evicted_by), None)
    state = "waits" if not claim.devices else "gives up" if by else "holds"
    why = f"for {by.label or by.owner} ({by.tier})" if by else ""
    if not claim.devices:
        why = queue.why_waiting(claims, claim.id, book.device_ids, book.noun)
    return Row(
        state=state,
        devices=claim.devices,
        gpus=claim.gpus,
        tier=claim.tier,
        position=queue.position(claims, claim.id),
        owner=claim.owner,
        label=claim.label,
        pid=claim.pid,
        since_s=claim.since_s,
        why=why,
    )


def table(book: Book, rows: list[Row], now_s: float) -> Table:
    """Return the table to read; its title counts the devices."""
    held = sum(len(row.devices) for row in rows)
    total = len(book.devices())
    cells = [
        (
            word(row.state),
            ",".join(row.devices) or f"{row.gpus} wanted",
            row.tier,
            str(row.position or ""),
            row.owner,
            format_duration(max(0.0, now_s - row.since_s)),
            row.label or f"pid {row.pid}",
            row.why,
        )
        for row in rows
    ]
    title = f"{total - held} of {total} {book.noun}{'' if total == 1 else 's'} free"
    header = ("STATE", "DEVICE", "TIER", "PLACE", "OWNER", "SINCE", "WHAT", "WHY")
    return Table(title, header, cells, "Nobody holds or waits for one.")
