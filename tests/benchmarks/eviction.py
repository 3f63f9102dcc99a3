"""How soon a notice is acted upon: from the notice to the snapshot's first byte, from its last to the free lease."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jupyter_client.manager import KernelManager

from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import Ticket
from tests.benchmarks.table import Figure, percentile

SAVES = 150
EVICTIONS = 5

# A training with steps of some 30 ms in its main thread; another thread asks for saves at random moments.
TRAIN_AND_SAVE = """
import json, random, sys, threading, time
import paddle
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.checkpoint.training import Training
from jupyter_paddle_gpu.core.notice import Cause
from pathlib import Path

training, store, ended, waits = Training(), Store(Path(sys.argv[1])), threading.Event(), []
training.install()
net = paddle.nn.Sequential(*[paddle.nn.Linear(512, 512) for _ in range(4)])
optimizer = paddle.optimizer.AdamW(parameters=net.parameters())
data = [paddle.rand([256, 512]) for _ in range(8)]

def ask():
    time.sleep(2)
    for _ in range(int(sys.argv[2])):
        time.sleep(random.uniform(0, 0.1))
        begun, first = time.perf_counter(), []
        with training.frozen(5.0) as frozen:
            store.save(frozen.state, position=frozen.position, cause=Cause.MANUAL,
                       progress=lambda written: first.append(time.perf_counter()))
        waits.append(first[0] - begun)
    ended.set()

threading.Thread(target=ask, daemon=True).start()
for step, batch in training.steps(data, epochs=10**6):
    net(batch).square().mean().backward()
    optimizer.step()
    optimizer.clear_grad()
    if ended.is_set():
        break
print(json.dumps(waits))
"""

KEEP_40_MB = """
import numpy as np
from jupyter_paddle_gpu import guard
big = np.ones(10_000_000, "f4")
guard.keep(big=big)
"""


def measure() -> list[Figure]:
    return [first_byte(), lease_free()]


def first_byte() -> Figure:
    """In one process, with a thread as the one that hears the notice: what is left is the wait for a safe moment."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-c", TRAIN_AND_SAVE, directory, str(SAVES)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    waits_ms = [1000 * wait for wait in json.loads(done.stdout)]
    p99 = percentile(waits_ms, 0.99)
    detail = f"median {statistics.median(waits_ms):.1f} ms, {SAVES} notices"
    return Figure("notice to first byte", p99, "ms p99", "≤ 20 ms", p99 <= 20, detail)


def lease_free() -> Figure:
    """A real kernel with 40 MB of state is evicted: from the time of its manifest to the lease that others see free."""
    with tempfile.TemporaryDirectory() as directory:
        names = {"BOOK": "book", "SNAPSHOTS": "snapshots"}
        os.environ |= {f"JUPYTER_PADDLE_GPU_{name}": f"{directory}/{place}" for name, place in names.items()}
        delays_s = [_evict_once(Path(directory)) for _ in range(EVICTIONS)]
    detail = f"median {statistics.median(delays_s):.2f} s of {EVICTIONS} evictions"
    return Figure("last byte to lease free", max(delays_s), "s", "≤ 1 s", max(delays_s) <= 1, detail)


def _evict_once(directory: Path) -> float:
    book = Book(directory / "book")
    manager = KernelManager(kernel_name="paddle-gpu")
    manager.start_kernel(cwd=str(directory))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    code = (
        "import numpy as np\nfrom jupyter_paddle_gpu import guard\nbig = np.ones(10_000_000, 'f4')\nguard.keep(big=big)"
    )
    client.execute_interactive(code, timeout=60)
    before = set((directory / "snapshots").rglob("manifest.json"))
    urgent = Ticket.file(book, GpuRequest(tier="urgent"), "urgent")
    urgent.wait(timeout_s=60)
    free_s = time.time()
    (manifest,) = set((directory / "snapshots").rglob("manifest.json")) - before
    delay_s = free_s - manifest.stat().st_mtime
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    urgent.release()
    return delay_s
