"""Ranks that are stopped and killed at random moments: every snapshot that there is, is of one step on all of them.

Without Paddle, so that a start is quick: nothing holds these ranks together but what they agree on.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint.keep import Decoder
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.notice import EXIT_EVICTED
from jupyter_paddle_gpu.core.ranks import World

SIZE, ROUNDS = 3, 4

# Each counts its steps in what it keeps, and walks at a pace of its own.
PROGRAM = """
import os, random, sys, time
from jupyter_paddle_gpu import guard
rank = int(os.environ["PADDLE_TRAINER_ID"])
guard.install("backup", grace_s=5, every="off")
done = [0]
guard.keep(done=done, large=bytes(10).hex() * 100_000)
for step, _ in guard.steps(range(10**6)):
    time.sleep(random.uniform(0, 0.002) * (1 + rank))
    done[0] += 1
    if step and step % 50 == 0:
        open(f"at-{rank}", "w").close()
"""


def started(place: Path, rank: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=place,
        env={**os.environ, "PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": str(SIZE)},
        stderr=subprocess.PIPE,
        text=True,
    )


def check_snapshots(place: Path) -> list[int | None]:
    """Return the steps of all snapshots; every rank's part is whole, and of that step."""
    snapshots = Store(place / "backup").list()
    for snapshot in snapshots:
        Store(place / "backup").verify(snapshot)
        for rank in range(SIZE):
            _, state = Store(place / "backup", world=World(rank, SIZE)).load(snapshot)
            kept = Decoder(state.tensors).decode(state.structure["kept"])
            assert kept["done"] == [snapshot.step], (snapshot, rank)
    return [snapshot.step for snapshot in snapshots]


def test_no_snapshot_mixes_steps_whoever_is_killed_when(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    chance = random.Random(int(request.config.getoption("--seed")))
    before: list[int | None] = []
    for number in range(ROUNDS):
        ranks = [started(tmp_path, rank) for rank in range(SIZE)]
        places = [tmp_path / f"at-{rank}" for rank in range(SIZE)]
        while not all(place.exists() for place in places):
            assert all(process.poll() is None for process in ranks), [process.communicate() for process in ranks]
            time.sleep(0.01)
        victim = chance.randrange(SIZE) if number % 2 else None
        for process in ranks:
            process.terminate()
        if victim is not None:
            time.sleep(chance.uniform(0, 0.08))
            ranks[victim].kill()
        said = [process.communicate(timeout=30)[1] for process in ranks]
        assert [p.returncode for i, p in enumerate(ranks) if i != victim] == [EXIT_EVICTED] * (
            SIZE - (victim is not None)
        ), said
        after = check_snapshots(tmp_path)
        if victim is None:
            assert after != before, said
            assert sum("saved, ended by SIGTERM" in text for text in said) == 1, said
        before = after
        for place in places:
            place.unlink()
