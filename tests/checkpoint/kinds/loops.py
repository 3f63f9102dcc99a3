"""Every shape of a training loop."""

from __future__ import annotations

import time
from typing import Any

import paddle
from paddle import nn

from tests.checkpoint.harness import Pace
from tests.checkpoint.kinds.base import Digits, History, loader_of, loss_of, mlp


def accumulate(guard: Any, pace: Pace, history: History) -> None:
    net = mlp(bn=True)
    optimizer = paddle.optimizer.AdamW(0.01, parameters=net.parameters())
    guard.keep(history=history)
    for step, batch in guard.steps(loader_of(), epochs=4):
        loss = loss_of(net, batch, pace)
        (loss / 3).backward()
        history.append((step, float(loss).hex()))
        if step % 3 == 2:
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)


class Trainer:
    """A training in a class, as frameworks have it."""

    def __init__(self, guard: Any, pace: Pace, history: History) -> None:
        self.guard, self.pace, self.history = guard, pace, history
        self.net = mlp(dropout=0.2, bn=True)
        self.rate = paddle.optimizer.lr.CosineAnnealingDecay(0.01, 20)
        self.optimizer = paddle.optimizer.AdamW(self.rate, parameters=self.net.parameters())
        self.best = float("inf")

    def run(self, epochs: int) -> None:
        self.guard.keep(history=self.history)
        for step, batch in self.guard.steps(loader_of(), epochs):
            self.one_step(step, batch)

    def one_step(self, step: int, batch: Any) -> None:
        loss = loss_of(self.net, batch, self.pace)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        self.rate.step()
        self.history.append((step, float(loss).hex()))


def in_a_class(guard: Any, pace: Pace, history: History) -> None:
    Trainer(guard, pace, history).run(epochs=3)


def recomputed(guard: Any, pace: Pace, history: History) -> None:
    """The forward pass is played again in the backward pass, with the same dropout."""
    from paddle.distributed.fleet.utils import recompute

    net = mlp(dropout=0.3)
    optimizer = paddle.optimizer.AdamW(0.01, parameters=net.parameters())
    guard.keep(history=history)
    for step, (image, label) in guard.steps(loader_of(), epochs=3):
        image.stop_gradient = False
        loss = nn.functional.cross_entropy(recompute(net, image), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        history.append((step, float(loss).hex()))


def two_loops(guard: Any, pace: Pace, history: History) -> None:
    """Pretraining and fine-tuning of one network with two optimizers."""
    net = mlp(dropout=0.2)
    guard.keep(history=history)
    first = paddle.optimizer.Momentum(0.05, parameters=net.parameters())
    for step, batch in guard.steps(loader_of(), epochs=1):
        loss = loss_of(net, batch, pace)
        loss.backward()
        first.step()
        first.clear_grad()
        history.append((step, float(loss).hex()))
        if step == 6:
            break
    second = paddle.optimizer.AdamW(0.01, parameters=net.parameters())
    for step, batch in guard.steps(loader_of(), epochs=2):
        loss = loss_of(net, batch, pace)
        loss.backward()
        second.step()
        second.clear_grad()
        history.append((step, float(loss).hex()))


def folds(guard: Any, pace: Pace, history: History) -> None:
    """The same function for each fold of a cross-validation."""

    def one_fold(fold: int) -> None:
        net = mlp(8)
        optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        subset = paddle.io.Subset(Digits(), [i for i in range(128) if i % 3 != fold])
        for step, batch in guard.steps(loader_of(subset), epochs=2):
            loss = loss_of(net, batch, pace)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            history.append((fold, step, float(loss).hex()))

    guard.keep(history=history)
    for fold in range(3):
        one_fold(fold)


def drawn_between(guard: Any, pace: Pace, history: History) -> None:
    """What is drawn between two loops takes long: most pictures are taken there."""
    guard.keep(history=history)
    for part in range(3):
        net = mlp(8)
        for _ in range(20):
            time.sleep(0.001)
            paddle.randn([2])
        optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        for step, batch in guard.steps(loader_of(batch_size=128), epochs=1):
            loss = loss_of(net, batch, pace)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            history.append((part, step, float(loss).hex()))


class Heard(paddle.callbacks.Callback):  # type: ignore[misc]  # paddle is not followed
    """A user's callback: writes down every batch, and what it counts itself."""

    def __init__(self, history: History, pace: Pace) -> None:
        super().__init__()
        self.history, self.pace, self.count = history, pace, 0

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        self.count += 1
        self.history.append((step, float(logs["loss"][0]).hex(), float(logs["acc"]), self.count))
        time.sleep(self.pace.tail_s)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.history.append(("epoch", epoch, float(logs["loss"][0]).hex()))

    def on_eval_end(self, logs: Any = None) -> None:
        self.history.append(("evaluated", float(logs["loss"][0]).hex()))


def fit(guard: Any, pace: Pace, history: History, **options: Any) -> None:
    """paddle.Model.fit, with an evaluation after each epoch."""
    net = mlp(dropout=0.2, bn=True)
    model = paddle.Model(net)
    rate = paddle.optimizer.lr.StepDecay(0.05, 5)
    model.prepare(
        paddle.optimizer.Momentum(rate, parameters=net.parameters()),
        nn.CrossEntropyLoss(),
        paddle.metric.Accuracy(),
    )
    guard.keep(history=history)
    guard.restore_pending()
    check = paddle.io.Subset(Digits(1797), list(range(1700, 1760)))
    callbacks = [Heard(history, pace), paddle.callbacks.EarlyStopping("loss", patience=5, save_best_model=False)]
    dataset = Digits(noise=True, pace=pace)
    model.fit(dataset, check, batch_size=32, epochs=3, verbose=0, callbacks=callbacks, **options)


def fit_accumulated(guard: Any, pace: Pace, history: History) -> None:
    fit(guard, pace, history, accumulate_grad_batches=3, num_iters=20)
