"""Two ranks of one training, as paddle.distributed starts them: one snapshot of both, at one step, or none."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.notice import EXIT_EVICTED, Cause
from jupyter_paddle_gpu.core.ranks import World

pytest.importorskip("paddle")

TRAIN = """
import os, random, threading, time
import numpy as np, paddle
import paddle.distributed as dist
from jupyter_paddle_gpu import guard

def by_itself(seen):
    # as the thread does that makes snapshots by itself, but at once
    from jupyter_paddle_gpu.core.notice import Cause
    from jupyter_paddle_gpu.kernel.runtime import runtime
    while len(seen) < 10:
        time.sleep(0.001)
    runtime().protection.save(Cause.PERIODIC, 1.0, whole=True)

def slow(kind, method, seconds):
    quick = getattr(kind, method)
    def later(*arguments):
        time.sleep(seconds)
        return quick(*arguments)
    setattr(kind, method, later)

def main():
    dist.init_parallel_env()
    rank = int(os.environ.get("PADDLE_TRAINER_ID", 0))
    if os.environ.get("LATE"):
        # rank 1 asks when rank 0 has looked already, and is the last to hear that the snapshot is whole
        from jupyter_paddle_gpu.kernel.company.company import Company
        from jupyter_paddle_gpu.kernel.company.leading import Leading
        slow(guard, "save", 0.02 * rank)
        slow(Leading, "_lead", 0.06)
        slow(Company, "saved", 0.06 * rank)
    paddle.seed(7); np.random.seed(7 + rank); random.seed(7 + rank)
    net = paddle.nn.Sequential(
        paddle.nn.Linear(8, 16), paddle.nn.BatchNorm1D(16), paddle.nn.Dropout(0.2), paddle.nn.Linear(16, 1)
    )
    model = net if os.environ.get("APART") else paddle.DataParallel(net)
    paddle.seed(70 + rank)
    rate = paddle.optimizer.lr.CosineAnnealingDecay(0.01, T_max=60)
    optimizer = paddle.optimizer.AdamW(rate, parameters=model.parameters())
    table = np.random.RandomState(1).rand(64, 8).astype("float32")

    class Data(paddle.io.Dataset):
        def __getitem__(self, i):
            return table[i] + np.random.rand(8).astype("float32") / 100, table[i].sum(keepdims=True)

        def __len__(self):
            return len(table)

    sampler = paddle.io.DistributedBatchSampler(Data(), 4, shuffle=True)
    loader = paddle.io.DataLoader(Data(), batch_sampler=sampler)
    guard.install("backup", grace_s=8, every="off")
    seen = []
    guard.keep(seen=seen)
    if os.environ.get("LARGE") == str(rank):
        guard.keep(large=np.random.rand(2**24))
    if os.environ.get("BY_ITSELF") and rank == 0:
        threading.Thread(target=by_itself, args=(seen,)).start()
    losses = open(f"losses-{rank}", "a")
    for step, (x, y) in guard.steps(loader, epochs=int(os.environ.get("EPOCHS", 10))):
        loss = paddle.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        rate.step()
        seen.append(random.random())
        print(step, float(loss).hex(), seen[-1], file=losses, flush=True)
        time.sleep(float(os.environ.get("PAUSE", 0)))
        if str(step) in os.environ.get("SAVE", "").split(","):
            print("saved", guard.save().path.name, flush=True)
"""
MAIN = "if __name__ == '__main__':\n    main()\n"
SPAWN = "if __name__ == '__main__':\n    dist.spawn(main, nprocs=2, backend='gloo')\n"
STEPS = 80


def environ(**settings: str) -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1", **settings}


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Ranks:
    """The ranks of one start, each a child of ours: so that each one's exit code is seen."""

    def __init__(self, place: Path, count: int = 2, **settings: str) -> None:
        master, *ends = free_ports(count + 1)
        endpoints = ",".join(f"127.0.0.1:{port}" for port in ends)
        self.place = place
        self.processes = []
        for rank in range(count):
            own = {"PADDLE_TRAINER_ID": str(rank), "PADDLE_CURRENT_ENDPOINT": f"127.0.0.1:{ends[rank]}"}
            own |= {"PADDLE_TRAINERS_NUM": str(count), "PADDLE_TRAINER_ENDPOINTS": endpoints}
            own |= {"PADDLE_MASTER": f"127.0.0.1:{master}", "PADDLE_DISTRI_BACKEND": "gloo"}
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "train.py"],
                    cwd=place,
                    env=environ(**own, **settings),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )

    def signal(self, number: int, *ranks: int) -> None:
        for rank in ranks or range(len(self.processes)):
            self.processes[rank].send_signal(number)

    def end(self) -> tuple[list[int], list[str]]:
        """Return exit codes, and what each has printed."""
        said = ["".join(process.communicate(timeout=60)) for process in self.processes]
        return [process.returncode for process in self.processes], said


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN + MAIN)
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each rank writes when nothing happens."""
    place = tmp_path_factory.mktemp("undisturbed")
    (place / "train.py").write_text(TRAIN + MAIN)
    codes, said = Ranks(place).end()
    assert codes == [0, 0], said
    return losses(place)


def losses(place: Path) -> list[str]:
    return [(place / f"losses-{rank}").read_text() for rank in range(2)]


def until_step(place: Path, step: int) -> None:
    """Wait until rank 0 has written the loss of a step."""
    until(lambda: (file := place / "losses-0").exists() and f"\n{step} " in "\n" + file.read_text())


def until(true: object, limit_s: float = 60.0) -> None:
    end_s = time.monotonic() + limit_s
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(0.001)


def steps_of(place: Path) -> list[int | None]:
    return [snapshot.step for snapshot in Store(place / "backup").list()]


def launched(place: Path, stop_at: int | None, **settings: str) -> str:
    """Run the launcher, send it SIGTERM at a step, and return what rank 0 has said."""
    command = [sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "train.py"]
    with subprocess.Popen(
        command, cwd=place, env=environ(**settings), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        if stop_at is not None:
            until_step(place, stop_at)
            process.terminate()
        process.wait(timeout=60)
    return (place / "log" / "workerlog.0").read_text() + (place / "log" / "workerlog.1").read_text()


def test_the_launchers_sigterm_saves_one_step_and_a_resume_is_exact(
    place: Path, undisturbed: list[str], request: pytest.FixtureRequest
) -> None:
    chance = random.Random(int(request.config.getoption("--seed")))
    for first, last in ((0, 20), (30, 50)):
        said = launched(place, chance.randrange(first, last), PAUSE="0.01")
        step = steps_of(place)[0]
        assert said.count(f"paddle-gpu: step {step} saved, ended by SIGTERM") == 1, said  # rank 0 alone speaks
        assert losses(place) == ["".join(whole.splitlines(True)[:step]) for whole in undisturbed]
    said = launched(place, None)
    assert f"step {step} restored" in said
    assert losses(place) == undisturbed


def test_every_rank_ends_with_143_when_any_one_gets_sigterm(place: Path) -> None:
    ranks = Ranks(place, PAUSE="0.01")
    until_step(place, 5)
    ranks.signal(signal.SIGTERM, 1)
    codes, said = ranks.end()
    assert codes == [EXIT_EVICTED, EXIT_EVICTED], said
    (step,) = steps_of(place)
    assert [text.count("\n") for text in losses(place)] == [step, step]
    assert not any("Traceback" in text for text in said), "\n".join(said)


def test_guard_save_is_of_all_ranks(place: Path, undisturbed: list[str]) -> None:
    ranks = Ranks(place, SAVE="3,40,41")
    codes, said = ranks.end()
    assert codes == [0, 0], said
    names = ["000001-step-4", "000002-step-41", "000003-step-42"]
    assert [[line for line in text.splitlines() if line.startswith("saved")] for text in said] == [
        [f"saved {name}" for name in names]
    ] * 2
    assert losses(place) == undisturbed
    stores = [Store(place / "backup", world=World(rank, 2)) for rank in range(2)]
    assert [store.load()[1].structure["loop"]["position"] for store in stores] == [[42, 5, 2]] * 2  # type: ignore[index]
    assert all(snapshot.ranks == 2 for snapshot in stores[0].list())


def test_a_save_that_a_late_rank_asks_for_is_made_once(place: Path) -> None:
    codes, said = Ranks(place, SAVE="3,20", LATE="1", PAUSE="0.02", EPOCHS="3").end()
    assert codes == [0, 0], said
    assert [snapshot.path.name for snapshot in Store(place / "backup").list()] == ["000002-step-21", "000001-step-4"]


def test_a_snapshot_that_rank_0_makes_by_itself_is_of_all_ranks(place: Path, undisturbed: list[str]) -> None:
    codes, said = Ranks(place, BY_ITSELF="1", PAUSE="0.02").end()
    assert codes == [0, 0], said
    assert losses(place) == undisturbed
    (snapshot,) = Store(place / "backup").list()
    assert (snapshot.cause, snapshot.ranks, snapshot.inexact) == (Cause.PERIODIC, 2, ())
    (place / "losses-0").unlink()
    (place / "losses-1").unlink()
    codes, said = Ranks(place).end()
    assert codes == [0, 0], said
    assert losses(place) == ["".join(whole.splitlines(True)[snapshot.step :]) for whole in undisturbed]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed_while_it_saves_leaves_the_snapshot_before(place: Path, rank: int) -> None:
    ranks = Ranks(place, SAVE="5", PAUSE="0.02", LARGE=str(rank))
    until(lambda: steps_of(place) == [6])
    until_step(place, 7)
    ranks.signal(signal.SIGTERM)
    name = "rank-1.tensors.safetensors" if rank else "tensors.safetensors"
    until(lambda: any(path.parent.name != "000001-step-6" for path in (place / "backup").glob(f"*/{name}")))
    time.sleep(0.06)  # both have come to their next update: gloo aborts a process whose peer goes in a collective
    assert steps_of(place) == [6], "it has saved already: nothing was tried"
    ranks.signal(signal.SIGKILL, rank)
    begun_s = time.monotonic()
    codes, said = ranks.end()
    assert time.monotonic() - begun_s < 8
    assert codes[rank] == -signal.SIGKILL
    assert codes[1 - rank] in (EXIT_EVICTED, -signal.SIGABRT), said
    if codes[1 - rank] == EXIT_EVICTED:
        assert f"rank {rank} has ended without" in said[1 - rank]
    assert steps_of(place) == [6]


def test_another_number_of_ranks_goes_on_and_says_what_is_not_exact(place: Path) -> None:
    codes, said = Ranks(place, SAVE="9", EPOCHS="2").end()
    assert codes == [0, 0], said
    codes, said = Ranks(place, 1, EPOCHS="3").end()
    assert codes == [0], said
    assert "step 10 restored" in said[0]
    assert "the exact position in the data: the snapshot is of 2 ranks, here is 1" in said[0]
    resumed = losses(place)[0].splitlines()[16:]
    assert [int(line.split()[0]) for line in resumed] == list(range(10, 10 + 28))  # 4 of 16 batches are done of epoch 1


def test_ranks_that_train_apart_come_back_only_as_many(place: Path) -> None:
    codes, said = Ranks(place, SAVE="9", EPOCHS="2", APART="1").end()
    assert codes == [0, 0], said
    codes, said = Ranks(place, 1, EPOCHS="3").end()
    assert codes == [1]
    assert "The snapshot is of 2 ranks that differ, and here is 1" in said[0]


def test_spawn_starts_ranks_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN + SPAWN)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=environ(SAVE="9", EPOCHS="2"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("saved 000001-step-10") == 2


def test_what_alone_is_written_has_the_format_that_it_had(place: Path) -> None:
    codes, said = Ranks(place, 1, SAVE="2", EPOCHS="1").end()
    assert codes == [0], said
    (snapshot,) = Store(place / "backup").list()
    manifest = json.loads((snapshot.path / "manifest.json").read_text())["manifest"]
    assert manifest["version"] == 1
    assert "parts" not in manifest
    assert not (place / "backup" / ".ranks").exists()
