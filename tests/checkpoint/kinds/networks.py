"""Networks that are more than layers in a row."""

from __future__ import annotations

import time
from typing import Any

import paddle
from paddle import nn

from tests.checkpoint.harness import Pace
from tests.checkpoint.kinds.base import History, loader_of, loss_of, mlp, plain


class Tied(nn.Layer):  # type: ignore[misc]  # paddle is not followed
    """Embedding of pixels with sparse gradients, a frozen layer, a weight used twice, a buffer that moves."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(17, 8, sparse=True)
        self.frozen = nn.Linear(8, 8)
        for param in self.frozen.parameters():
            param.stop_gradient = True
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.out = nn.Linear(8, 10)
        self.register_buffer("mean", paddle.zeros([8]))
        self.unused = nn.Linear(2, 2)

    def forward(self, image: Any) -> Any:
        pixels = (image * 16).astype("int64").flatten(1).clip(0, 16)
        x = self.frozen(self.embedding(pixels)).mean(axis=1)
        mean = (0.9 * self._buffers["mean"] + 0.1 * x.mean(axis=0)).detach()
        self._buffers["mean"] = mean
        return self.out(self.second(nn.functional.relu(self.first(x - mean))))


def tied(guard: Any, pace: Pace, history: History) -> None:
    plain(guard, pace, history, lambda net: paddle.optimizer.Adam(0.01, parameters=net.parameters()), Tied())


def late_part(guard: Any, pace: Pace, history: History) -> None:
    """A head that gets gradients in some steps only: its cleared gradient is zero, and Adam moves it on."""
    net, head = mlp(), nn.Linear(10, 10)
    optimizer = paddle.optimizer.Adam(0.01, parameters=[*net.parameters(), *head.parameters()])
    guard.keep(history=history)
    for step, (image, label) in guard.steps(loader_of(), epochs=3):
        out = net(image)
        loss = nn.functional.cross_entropy(head(out) if step % 4 == 1 else out, label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        history.append((step, float(loss).hex(), float(head.weight.sum()).hex()))
        time.sleep(pace.tail_s)


def average(guard: Any, pace: Pace, history: History) -> None:
    """A moving average of the weights, kept by hand."""
    net = mlp()
    optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
    shadow = {name: value.clone() for name, value in net.state_dict().items()}
    guard.keep(history=history, shadow=shadow)
    for step, batch in guard.steps(loader_of(), epochs=3):
        loss = loss_of(net, batch, pace)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        for name, value in net.state_dict().items():
            shadow[name] = 0.9 * shadow[name] + 0.1 * value.detach()
        history.append((step, float(loss).hex(), float(sum(part.sum() for part in shadow.values())).hex()))


def static(guard: Any, pace: Pace, history: History) -> None:
    net = paddle.jit.to_static(mlp(dropout=0.2, bn=True))
    plain(guard, pace, history, lambda net: paddle.optimizer.Adam(0.01, parameters=net.parameters()), net)


def parallel(guard: Any, pace: Pace, history: History) -> None:
    net = paddle.DataParallel(mlp(bn=True))
    plain(guard, pace, history, lambda net: paddle.optimizer.Adam(0.01, parameters=net.parameters()), net)
