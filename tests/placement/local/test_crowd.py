"""A crowd of processes on two devices, some of which are killed: no device is ever used by two."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from jupyter_paddle_gpu.placement.local.book import Book

SEED = 20240
CUSTOMER = """
import fcntl, pathlib, random, sys, time
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import HeldLease, Ticket
directory, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
while True:
    request = GpuRequest(chance.choice([1, 1, 2]), tier=chance.choice(["notebook", "batch", "urgent"]))
    ticket = Ticket.file(Book(directory), request, str(seed))
    devices = ticket.wait()
    lease = HeldLease.attach(directory, ticket.claim_id, ticket.fd)
    used = [open(directory.parent / device.id, "a") for device in devices]
    try:
        for file in used:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("two use", [device.id for device in devices], flush=True)
        break
    print("used", flush=True)
    end_s = time.monotonic() + chance.uniform(0, 0.1)
    while time.monotonic() < end_s and not lease.eviction():
        time.sleep(0.01)
    for file in used:
        file.close()
    lease.release()
"""


def customer(book: Book, seed: int, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CUSTOMER, str(book.directory), str(seed)], stdout=output)


def test_no_device_is_used_by_two_while_customers_come_and_are_killed(tmp_path: Path) -> None:
    book = Book(tmp_path / "book")
    (book.directory / "machine.json").write_text(json.dumps({"gpus": ["0", "1"]}))
    chance, uses, seed = random.Random(SEED), tmp_path / "uses", 0
    with uses.open("w") as output:
        customers: list[subprocess.Popen[bytes]] = []
        end_s = time.monotonic() + 60
        try:
            while len(uses.read_text().splitlines()) < 40 and time.monotonic() < end_s:
                while len(customers) < 4:
                    seed += 1
                    customers.append(customer(book, seed, output.fileno()))
                time.sleep(chance.uniform(0.1, 0.4))
                victim = customers.pop(chance.randrange(len(customers)))
                victim.kill()
                victim.wait()
        finally:
            for process in customers:
                process.kill()
                process.wait()
    lines = uses.read_text().splitlines()
    assert set(lines) == {"used"}
    assert len(lines) >= 40
    assert book.claims() == []
