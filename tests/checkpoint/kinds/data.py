"""Every way in which batches come."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle

from tests.checkpoint.harness import Pace
from tests.checkpoint.kinds.base import IMAGES, LABELS, Digits, History, loss_of, mlp, plain, simple


class OwnSampler(paddle.io.BatchSampler):  # type: ignore[misc]  # paddle is not followed
    """A user's batch sampler: draws each batch when it is asked for, and counts its epochs."""

    def __init__(self) -> None:
        self.epoch = 0
        self.random = np.random.RandomState(3)

    def __iter__(self) -> Iterator[list[int]]:
        self.epoch += 1
        for _ in range(8):
            yield [(int(i) + self.epoch) % 256 for i in self.random.randint(0, 256, 16)] + [np.random.randint(256)]

    def __len__(self) -> int:
        return 8


def own_sampler(guard: Any, pace: Pace, history: History) -> None:
    dataset = Digits(noise=True, pace=pace)
    options = {"batch_sampler": OwnSampler(), "batch_size": 1, "shuffle": False}
    plain(guard, pace, history, simple, dataset=dataset, **options)


def distributed_sampler(guard: Any, pace: Pace, history: History) -> None:
    sampler = paddle.io.DistributedBatchSampler(Digits(), 32, num_replicas=2, rank=1, shuffle=True)
    plain(guard, pace, history, simple, batch_sampler=sampler, batch_size=1, shuffle=False)


def workers(guard: Any, pace: Pace, history: History) -> None:
    dataset = Digits(noise=True, pace=pace)
    plain(guard, pace, history, simple, mlp(dropout=0.2), dataset=dataset, num_workers=2, epochs=2)


class Stream(paddle.io.IterableDataset):  # type: ignore[misc]  # paddle is not followed
    def __iter__(self) -> Iterator[Any]:
        for index in np.random.permutation(200):
            yield IMAGES[index] + np.float32(0.1 * np.random.rand()), LABELS[index]


def stream(guard: Any, pace: Pace, history: History) -> None:
    plain(guard, pace, history, simple, mlp(dropout=0.2), dataset=Stream(), shuffle=False)


class Shards(paddle.io.IterableDataset):  # type: ignore[misc]  # paddle is not followed
    """Each worker reads its own part, with random noise."""

    def __iter__(self) -> Iterator[Any]:
        info = paddle.io.get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(start, 200, step):
            yield IMAGES[index] + np.float32(0.1 * np.random.rand() + 0.1 * random.random()), LABELS[index]


def shards(guard: Any, pace: Pace, history: History) -> None:
    options: dict[str, Any] = {"num_workers": 2, "shuffle": False, "batch_size": 25, "epochs": 2}
    plain(guard, pace, history, simple, mlp(dropout=0.2), dataset=Shards(), **options)


def lists(guard: Any, pace: Pace, history: History) -> None:
    """No DataLoader: a list of batches, and then a generator function."""
    batches = [(paddle.to_tensor(IMAGES[i : i + 32]), paddle.to_tensor(LABELS[i : i + 32])) for i in range(0, 256, 32)]

    def generated() -> Iterator[Any]:
        for i in np.random.permutation(8):
            yield batches[i]

    net = mlp(dropout=0.2)
    optimizer = simple(net)
    guard.keep(history=history)
    for data in (batches, generated):
        for step, batch in guard.steps(data, epochs=2):
            loss = loss_of(net, batch, pace)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            history.append((step, float(loss).hex()))
