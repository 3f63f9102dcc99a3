"""What the live view costs: its kernel while a page shows it, and its page's first load."""

from __future__ import annotations

import asyncio
import gzip
import statistics
from pathlib import Path

from jupyter_paddle_gpu.kernel.widget import screen
from tests.benchmarks.sight import GPUS, machine, served
from tests.benchmarks.table import Figure
from tests.server.jupyter import JupyterServer

ROUNDS = 6
ROUND_S = 8.0

SHOW = """
import time
from jupyter_paddle_gpu.kernel.commands.watch import live
screen = live()
def used(shown, seconds):
    screen.heard({"shown": shown, "browser": "benchmark"})
    time.sleep(1.5)  # what begins and ends with it is not what it costs
    before = time.process_time()
    time.sleep(seconds)
    print(time.process_time() - before)
"""


def measure() -> list[Figure]:
    with machine() as (root, environment), served(root, environment) as (server, kernel):
        shown_s, hidden_s = asyncio.run(_rounds(server, kernel))
    cost = 100 * (statistics.median(shown_s) - statistics.median(hidden_s)) / ROUND_S
    detail = f"{GPUS} GPUs; hidden {100 * statistics.median(hidden_s) / ROUND_S:.2f} %"
    parts = (*screen.SCRIPTS, "screen.css", "texts.json")
    size = len(gzip.compress(b"".join((Path(screen.HERE) / part).read_bytes() for part in parts)))
    return [
        Figure("live view that a page shows, in its kernel", cost, "% of a core", "<= 0.5", cost <= 0.5, detail),
        Figure("its page's part, gzipped", size / 1000, "kB", "<= 10", size <= 10_000),
    ]


async def _rounds(server: JupyterServer, kernel: str) -> tuple[list[float], list[float]]:
    await server.run(kernel, SHOW)
    shown, hidden = list[float](), list[float]()
    for turn in range(ROUNDS):
        for now in (True, False) if turn % 2 else (False, True):
            (shown if now else hidden).append(float(await server.run(kernel, f"used({now}, {ROUND_S})")))
    return shown, hidden
