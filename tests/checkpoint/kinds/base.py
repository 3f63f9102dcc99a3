"""What the trainings are made of: data, networks, and the loop that most people write."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from paddle import nn
from sklearn.datasets import load_digits

from tests.checkpoint.harness import Pace

_DIGITS = load_digits()
IMAGES = (_DIGITS.images / 16).astype("float32")[:, None]
LABELS = _DIGITS.target.astype("int64")
History = list[Any]
_AT_ONCE = Pace()


class Digits(paddle.io.Dataset):  # type: ignore[misc]  # paddle is not followed
    """``noise``: NumPy's and Python's random numbers in every sample."""

    def __init__(self, count: int = 256, noise: bool = False, pace: Pace = _AT_ONCE) -> None:
        self.count, self.noise, self.pace = count, noise, pace

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = IMAGES[index]
        if self.noise:
            image = image + np.float32(0.1 * np.random.rand() + 0.1 * random.random())
        if self.pace.fetch_s:
            time.sleep(self.pace.fetch_s)
        return image, LABELS[index]

    def __len__(self) -> int:
        return self.count


def mlp(width: int = 16, bn: bool = False, dropout: float = 0.0) -> Any:
    parts: list[Any] = [nn.Flatten(), nn.Linear(64, width)]
    if bn:
        parts.append(nn.BatchNorm1D(width))
    parts.append(nn.ReLU())
    if dropout:
        parts.append(nn.Dropout(dropout))
    return nn.Sequential(*parts, nn.Linear(width, 10))


def loss_of(net: Any, batch: Any, pace: Pace) -> Any:
    image, label = batch
    loss = nn.functional.cross_entropy(net(image), label)
    if pace.forward_s:
        time.sleep(pace.forward_s)
    return loss


def loader_of(dataset: Any = None, **options: Any) -> Any:
    options = {"batch_size": 32, "shuffle": True, **options}
    return paddle.io.DataLoader(Digits() if dataset is None else dataset, **options)


def plain(
    guard: Any, pace: Pace, history: History, make: Callable[[Any], Any], net: Any = None, **options: Any
) -> None:
    """One network, one optimizer; what most people write."""
    net = net if net is not None else mlp()
    optimizer = make(net)
    epochs = options.pop("epochs", 3)
    loader = loader_of(options.pop("dataset", None), **options)
    guard.keep(history=history)
    for step, batch in guard.steps(loader, epochs=epochs):
        loss = loss_of(net, batch, pace)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        history.append((step, float(loss).hex()))
        if pace.tail_s:
            time.sleep(pace.tail_s)
        if isinstance(optimizer._learning_rate, paddle.optimizer.lr.LRScheduler):
            optimizer._learning_rate.step()


def simple(net: Any) -> Any:
    return paddle.optimizer.Adam(0.01, parameters=net.parameters())
