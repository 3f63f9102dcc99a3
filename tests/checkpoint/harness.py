"""Runs trainings in processes of their own: one that is never interrupted but photographed, and fresh ones that resume.

The processes are forked from one that has imported paddle and done nothing with it.
"""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import random
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.core.snapshot import Snapshot

_MODULES = {  # the modules of kinds/, and the functions of each
    "optimizers": (
        "sgd", "momentum", "adam", "adamw", "lamb", "groups", "lbfgs", "adagrad", "adadelta", "adamax", "rmsprop",
        "since_3", "look_ahead", "averaged", "gan", "twins",
    ),
    "precision": ("amp_o1", "amp_o2"),
    "schedulers": ("decays", "steps", "cycles", "plateau"),
    "networks": ("tied", "late_part", "average", "static", "parallel"),
    "data": ("own_sampler", "distributed_sampler", "workers", "stream", "shards", "lists"),
    "loops": (
        "accumulate", "in_a_class", "recomputed", "two_loops", "folds", "drawn_between", "fit", "fit_accumulated",
    ),
}  # fmt: skip
KINDS = tuple(f"{module}.{name}" for module, names in _MODULES.items() for name in names)
_PATIENCE_S = 5.0
_LIMIT_S = 120.0


@dataclass(frozen=True)
class Pace:
    """Seconds that a step spends in its forward pass, in its tail after the update, and in fetching a sample."""

    forward_s: float = 0.0
    tail_s: float = 0.0
    fetch_s: float = 0.0


@dataclass(frozen=True)
class Job:
    """``resume`` from this snapshot; take pictures at random moments drawn from ``seed``, ``every_s`` apart (0: none).

    ``before``: first run the same training for three steps in this process, as in a kernel with a past.
    """

    kind: str
    directory: Path
    pace: Pace = Pace()
    seed: int = 0
    every_s: float = 0.01
    resume: Path | None = None
    before: bool = False


@dataclass
class Result:
    """``history`` of all losses at the end; ``snapshots`` taken."""

    history: list[Any] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)


def run(job: Job) -> Result:
    """Run a job in a fresh process. Raises AssertionError with its traceback when it fails."""
    result = call("tests.checkpoint.harness", "play", job)
    assert isinstance(result, Result)
    return result


def call(module: str, function: str, *arguments: Any) -> Any:
    """Return what a function returns in a fresh process with Paddle. Raises AssertionError with its traceback."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"tests.checkpoint.kinds.{name}" for name in _MODULES])
    here, there = context.Pipe()
    process = context.Process(target=_main, args=(there, module, function, arguments))
    process.start()
    there.close()
    try:
        assert here.poll(_LIMIT_S), f"{function}{arguments} has not ended after {_LIMIT_S} s"
        result, error = here.recv()
    finally:
        process.kill()
        process.join()
    assert not error, error
    return result


def _main(pipe: Any, module: str, function: str, arguments: tuple[Any, ...]) -> None:
    result, error = None, ""
    faulthandler.dump_traceback_later(_LIMIT_S - 10)  # says where a training hangs
    try:
        result = getattr(importlib.import_module(module), function)(*arguments)
    except BaseException:  # noqa: BLE001  # told to the test
        error = traceback.format_exc()
    pipe.send((result, error))


class Guard:
    """What the product's facade does, without its processes."""

    def __init__(self, training: Any, limit: int | None = None) -> None:
        self.training = training
        self.pending: Any = None
        self._limit = limit

    def keep(self, **values: Any) -> None:
        self.training.keep(**values)

    def restore_pending(self) -> None:
        if self.pending is not None:
            self.training.restore(self.pending)
            self.pending = None

    def steps(self, loader: Any, epochs: int = 1) -> Iterator[Any]:
        self.restore_pending()
        for step, batch in self.training.steps(loader, epochs):
            if step == self._limit:
                return
            yield step, batch


def seed_all(seed: int) -> None:
    import numpy as np
    import paddle

    paddle.seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def play(job: Job) -> Result:
    """Train as the job says, in this process."""
    from jupyter_paddle_gpu.checkpoint.store import Store
    from jupyter_paddle_gpu.checkpoint.training import Training

    module, name = job.kind.split(".")
    result = Result()
    train = getattr(importlib.import_module(f"tests.checkpoint.kinds.{module}"), name)
    training = Training()
    training.install()
    store = Store(job.directory, keep=10_000)
    guard = Guard(training)
    if job.before:
        seed_all(5)
        run_cell(train, Guard(training, 3), job.pace, [])
        training.kept.forget("history")
    seed_all(11 if job.resume is None else 12)
    if job.resume is not None:
        guard.pending = store.load(job.resume)[1]
    if not job.every_s:
        run_cell(train, guard, job.pace, result.history)
        return result
    with photographer(training, store, job, result):
        run_cell(train, guard, job.pace, result.history)
    return result


def run_cell(train: Any, *arguments: Any) -> None:
    """Run a training as a notebook's cell does: from code that is compiled anew each time."""
    exec(compile("train(*arguments)", "<cell>", "exec"), {"train": train, "arguments": arguments})


@contextmanager
def photographer(training: Any, store: Any, job: Job, result: Result) -> Iterator[None]:
    """Save at random moments from a thread while the block runs."""
    over = threading.Event()
    draw = random.Random(job.seed)
    faults: list[BaseException] = []

    def work() -> None:
        from jupyter_paddle_gpu.core.notice import Cause

        try:
            while not over.wait(job.every_s * 2 * draw.random()):
                with training.frozen(_PATIENCE_S) as frozen:
                    if frozen.position is not None:
                        result.snapshots.append(
                            store.save(
                                frozen.state, position=frozen.position, cause=Cause.MANUAL, inexact=frozen.inexact
                            )
                        )
        except BaseException as error:  # noqa: BLE001  # raised in the main thread
            faults.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if faults:
        raise faults[0]


def choose(snapshots: list[Snapshot], count: int, seed: int) -> list[Snapshot]:
    """Return the first, the last, and others at random."""
    if len(snapshots) <= count:
        return snapshots
    middle = random.Random(seed).sample(snapshots[1:-1], max(0, count - 2))
    return [snapshots[0], *middle, snapshots[-1]]
