"""Every optimizer of Paddle, alone and several together."""

from __future__ import annotations

import time
from functools import partial
from inspect import signature
from typing import Any

import paddle
from paddle import nn

from tests.checkpoint.harness import Pace
from tests.checkpoint.kinds.base import Digits, History, loader_of, loss_of, mlp, plain


def sgd(guard: Any, pace: Pace, history: History) -> None:
    plain(guard, pace, history, lambda net: paddle.optimizer.SGD(0.1, parameters=net.parameters()))


def momentum(guard: Any, pace: Pace, history: History) -> None:
    def make(net: Any) -> Any:
        clip = nn.ClipGradByGlobalNorm(0.5)
        return paddle.optimizer.Momentum(
            0.05, 0.9, net.parameters(), use_nesterov=True, weight_decay=0.01, grad_clip=clip
        )

    plain(guard, pace, history, make)


def adam(guard: Any, pace: Pace, history: History) -> None:
    def make(net: Any) -> Any:
        since_3 = {"amsgrad": True} if "amsgrad" in signature(paddle.optimizer.Adam).parameters else {}
        return paddle.optimizer.Adam(paddle.optimizer.lr.NoamDecay(64, 10), parameters=net.parameters(), **since_3)

    plain(guard, pace, history, make, dataset=Digits(noise=True, pace=pace))


def adamw(guard: Any, pace: Pace, history: History) -> None:
    def make(net: Any) -> Any:
        rate = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.CosineAnnealingDecay(0.01, 20), 5, 0.0, 0.01)
        return paddle.optimizer.AdamW(rate, parameters=net.parameters())

    plain(guard, pace, history, make, mlp(bn=True, dropout=0.3), dataset=Digits(noise=True, pace=pace))


def lamb(guard: Any, pace: Pace, history: History) -> None:
    plain(guard, pace, history, lambda net: paddle.optimizer.Lamb(0.01, parameters=net.parameters()))


def groups(guard: Any, pace: Pace, history: History) -> None:
    def make(net: Any) -> Any:
        return paddle.optimizer.Adam(
            0.01,
            parameters=[
                {"params": net[1].parameters(), "learning_rate": 0.1},
                {"params": net[3].parameters(), "weight_decay": 0.01},
            ],
        )

    plain(guard, pace, history, make)


def lbfgs(guard: Any, pace: Pace, history: History) -> None:
    net = mlp(8)
    optimizer = paddle.optimizer.LBFGS(0.5, max_iter=3, line_search_fn="strong_wolfe", parameters=net.parameters())
    guard.keep(history=history)
    for step, batch in guard.steps(loader_of(batch_size=64), epochs=3):

        def closure(batch: Any = batch) -> Any:
            optimizer.clear_grad()
            loss = loss_of(net, batch, pace)
            loss.backward()
            return loss

        history.append((step, float(optimizer.step(closure)).hex()))


def adagrad(guard: Any, pace: Pace, history: History) -> None:
    def make(net: Any) -> Any:
        clip = nn.ClipGradByValue(0.01)
        return paddle.optimizer.Adagrad(0.05, parameters=net.parameters(), grad_clip=clip)

    plain(guard, pace, history, make)


def adadelta(guard: Any, pace: Pace, history: History) -> None:
    def make(net: Any) -> Any:
        return paddle.optimizer.Adadelta(1.0, parameters=net.parameters(), grad_clip=nn.ClipGradByNorm(0.1))

    plain(guard, pace, history, make)


def adamax(guard: Any, pace: Pace, history: History) -> None:
    plain(guard, pace, history, lambda net: paddle.optimizer.Adamax(0.01, parameters=net.parameters()))


def rmsprop(guard: Any, pace: Pace, history: History) -> None:
    def make(net: Any) -> Any:
        return paddle.optimizer.RMSProp(0.005, momentum=0.5, centered=True, parameters=net.parameters())

    plain(guard, pace, history, make)


def since_3(guard: Any, pace: Pace, history: History) -> None:
    """NAdam, RAdam, Rprop and ASGD, which Paddle 2.6 does not have, behind one that it has."""
    for name in ("Adam", "NAdam", "RAdam", "Rprop", "ASGD"):
        if (kind := getattr(paddle.optimizer, name, None)) is not None:
            options = {"batch_num": 4} if name == "ASGD" else {}
            plain(guard, pace, history, partial(_made, kind, options), epochs=1)


def _made(kind: Any, options: dict[str, Any], net: Any) -> Any:
    return kind(learning_rate=0.01, parameters=net.parameters(), **options)


def look_ahead(guard: Any, pace: Pace, history: History) -> None:
    """An optimizer around another one: it keeps slow weights of its own."""
    net = mlp()
    inner = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    optimizer = paddle.incubate.LookAhead(inner, alpha=0.5, k=3)
    guard.keep(history=history)
    for step, batch in guard.steps(loader_of(), epochs=3):
        loss = loss_of(net, batch, pace)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        history.append((step, float(loss).hex()))


def averaged(guard: Any, pace: Pace, history: History) -> None:
    """Paddle's own running average of weights, applied for an evaluation and taken back."""
    net = mlp()
    optimizer = paddle.optimizer.Momentum(0.05, parameters=net.parameters())
    average = paddle.incubate.ModelAverage(
        0.15, parameters=net.parameters(), min_average_window=2, max_average_window=10
    )
    guard.keep(history=history)
    for step, batch in guard.steps(loader_of(), epochs=3):
        loss = loss_of(net, batch, pace)
        loss.backward()
        optimizer.step()
        average.step()
        optimizer.clear_grad()
        with average.apply():
            mean = float(net[1].weight.sum()).hex()
        history.append((step, float(loss).hex(), mean))


def gan(guard: Any, pace: Pace, history: History) -> None:
    """Two optimizers, one of them every second step; the critic's weights are clipped by hand."""
    maker = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64))
    critic = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
    for_maker = paddle.optimizer.Adam(0.01, parameters=maker.parameters())
    for_critic = paddle.optimizer.RMSProp(0.005, parameters=critic.parameters())
    guard.keep(history=history)
    for step, (image, _) in guard.steps(loader_of(), epochs=3):
        real = image.flatten(1)
        loss = critic(maker(paddle.randn([real.shape[0], 8])).detach()).mean() - critic(real).mean()
        loss.backward()
        for_critic.step()
        for_critic.clear_grad()
        for param in critic.parameters():
            param.set_value(paddle.clip(param, -0.1, 0.1))
        time.sleep(pace.tail_s)
        if step % 2:
            made = -critic(maker(paddle.randn([real.shape[0], 8]))).mean()
            made.backward()
            for_maker.step()
            for_maker.clear_grad()
            for_critic.clear_grad()
        history.append((step, float(loss).hex()))


def twins(guard: Any, pace: Pace, history: History) -> None:
    """Two networks that look alike, trained against each other."""
    nets = [mlp(8), mlp(8)]
    optimizers = [paddle.optimizer.Adam(0.01, parameters=net.parameters()) for net in nets]
    guard.keep(history=history)
    for step, batch in guard.steps(loader_of(), epochs=3):
        for net, optimizer, other in zip(nets, optimizers, nets[::-1], strict=True):
            loss = loss_of(net, batch, pace) + 0.1 * nn.functional.mse_loss(net(batch[0]), other(batch[0]).detach())
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            history.append((step, float(loss).hex()))
