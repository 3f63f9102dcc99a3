"""Every learning-rate scheduler of Paddle."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import paddle
from paddle import nn

from tests.checkpoint.harness import Pace
from tests.checkpoint.kinds.base import IMAGES, LABELS, History, loader_of, loss_of, mlp

lr = paddle.optimizer.lr
_MAKERS: dict[str, Callable[[], Any]] = {
    "noam": lambda: lr.NoamDecay(64, 10),
    "piecewise": lambda: lr.PiecewiseDecay([3, 9], [0.1, 0.05, 0.01]),
    "natural_exp": lambda: lr.NaturalExpDecay(0.1, 0.1),
    "inverse_time": lambda: lr.InverseTimeDecay(0.1, 0.1),
    "polynomial": lambda: lr.PolynomialDecay(0.1, 5, cycle=True),
    "linear_warmup": lambda: lr.LinearWarmup(lr.StepDecay(0.1, 3), 5, 0.0, 0.1),
    "exponential": lambda: lr.ExponentialDecay(0.1, 0.9),
    "multi_step": lambda: lr.MultiStepDecay(0.1, [4, 9]),
    "step": lambda: lr.StepDecay(0.1, 4),
    "lambda": lambda: lr.LambdaDecay(0.1, lambda epoch: 0.95**epoch),
    "multiplicative": lambda: lr.MultiplicativeDecay(0.1, lambda epoch: 0.95),
    "cosine": lambda: lr.CosineAnnealingDecay(0.1, 7),
    "cosine_restarts": lambda: lr.CosineAnnealingWarmRestarts(0.1, 4, 2),
    "one_cycle": lambda: lr.OneCycleLR(0.1, 24),
    "cyclic": lambda: lr.CyclicLR(0.01, 0.1, 4, 5, mode="triangular2"),
    "linear": lambda: lr.LinearLR(0.1, 6),
    "own": lambda: Sawtooth(0.1),
}


class Sawtooth(paddle.optimizer.lr.LRScheduler):  # type: ignore[misc]  # paddle is not followed
    """A user's scheduler, with a value that Paddle does not know of."""

    def __init__(self, rate: float) -> None:
        self.teeth = 0
        super().__init__(rate)

    def state_keys(self) -> None:
        self.keys = ["last_epoch", "last_lr", "teeth"]

    def get_lr(self) -> float:
        if self.last_epoch % 5 == 0:
            self.teeth += 1
        return float(self.base_lr / (1 + self.teeth + self.last_epoch % 5))


def schedulers(guard: Any, pace: Pace, history: History, names: Sequence[str] = ()) -> None:
    """A short training with each of these, one after the other."""
    guard.keep(history=history)
    for name in names:
        net, rate = mlp(8), _MAKERS[name]()
        optimizer = paddle.optimizer.SGD(rate, parameters=net.parameters())
        for step, batch in guard.steps(loader_of(), epochs=2):
            loss = loss_of(net, batch, pace)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            history.append((name, step, float(loss).hex(), optimizer.get_lr()))
            rate.step()


def decays(guard: Any, pace: Pace, history: History) -> None:
    names = ("noam", "piecewise", "natural_exp", "inverse_time", "polynomial", "linear_warmup")
    schedulers(guard, pace, history, names)


def steps(guard: Any, pace: Pace, history: History) -> None:
    schedulers(guard, pace, history, ("exponential", "multi_step", "step", "lambda", "multiplicative"))


def cycles(guard: Any, pace: Pace, history: History) -> None:
    schedulers(guard, pace, history, ("cosine", "cosine_restarts", "one_cycle", "cyclic", "linear", "own"))


def plateau(guard: Any, pace: Pace, history: History) -> None:
    """A slow evaluation after the update decides on the learning rate."""
    net = mlp(dropout=0.2, bn=True)
    rate = paddle.optimizer.lr.ReduceOnPlateau(0.05, patience=1, threshold=0.2)
    optimizer = paddle.optimizer.Momentum(rate, parameters=net.parameters())
    progress: dict[str, Any] = {"best": float("inf"), "rates": np.zeros(24)}
    guard.keep(history=history, progress=progress)
    for step, batch in guard.steps(loader_of(), epochs=3):
        loss = loss_of(net, batch, pace)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        net.eval()
        with paddle.no_grad():
            checked = nn.functional.cross_entropy(net(paddle.to_tensor(IMAGES[-64:])), paddle.to_tensor(LABELS[-64:]))
        time.sleep(pace.tail_s)
        net.train()
        rate.step(checked)
        progress["best"] = min(progress["best"], float(checked))
        progress["rates"][step] = optimizer.get_lr()
        history.append((step, float(loss).hex(), progress["best"], progress["rates"].sum()))
