"""Small trainings of every kind on handwritten digits, written as users write them.

Each takes the guard, a Pace, and the history that every loss goes into.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from inspect import signature
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


def scaler_on_a_cpu() -> Any:
    """A GradScaler as a GPU has it: paddle switches it off where there is none."""
    scaler = paddle.amp.GradScaler(enable=False)
    scaler._enable, scaler._use_dynamic_loss_scaling = True, True
    scaler._init_loss_scaling, scaler._incr_ratio, scaler._decr_ratio = 1024.0, 2.0, 0.5
    scaler._incr_every_n_steps, scaler._decr_every_n_nan_or_inf = 5, 1
    scaler._incr_count = scaler._decr_count = 0
    flag = np.array([0]).astype(np.bool_)
    for name in ("_found_inf", "_temp_found_inf_value_false", "_temp_found_inf_fp16", "_temp_found_inf_bf16"):
        setattr(scaler, name, paddle.to_tensor(flag))
    scaler._temp_found_inf_fp32 = paddle.to_tensor(flag)
    scaler._scale = paddle.to_tensor(np.array([1024.0]).astype(np.float32))
    scaler._cache_found_inf = None
    states = __import__("paddle.amp.grad_scaler", fromlist=["defaultdict"])
    scaler._optimizer_states = states.defaultdict(states._refresh_optimizer_state)
    return scaler


def amp_o1(guard: Any, pace: Pace, history: History) -> None:
    net = mlp(dropout=0.2)
    optimizer = paddle.optimizer.AdamW(0.01, parameters=net.parameters())
    scaler = scaler_on_a_cpu()
    guard.keep(history=history)
    for step, batch in guard.steps(loader_of(), epochs=3):
        loss = loss_of(net, batch, pace)
        if step == 9:
            loss = loss * float("inf")  # the scaler passes over this step
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        history.append((step, float(loss).hex(), scaler._scale.item()))
        time.sleep(pace.tail_s)


class HalfLinear(nn.Linear):  # type: ignore[misc]  # paddle is not followed
    """Weights of two bytes; a CPU has no kernels that multiply them."""

    def forward(self, x: Any) -> Any:
        return x @ self.weight.astype("float32") + self.bias.astype("float32")


class MasterAdam(paddle.optimizer.Adam):  # type: ignore[misc]  # paddle is not followed
    """Adam's own accumulators and master weights, with the update that only a GPU's kernel has for two bytes."""

    def _append_optimize_op(self, block: Any, param_and_grad: Any) -> None:
        param, grad = param_and_grad
        master, wide = self._master_weights[param.name], grad.astype("float32")
        first, second = (self._get_accumulator_master(name, param) for name in ("moment1", "moment2"))
        power = self._get_accumulator_master("beta1_pow_acc", param)
        paddle.assign(first * 0.9 + wide * 0.1, first)
        paddle.assign(second * 0.999 + wide * wide * 0.001, second)
        paddle.assign(power * 0.9, power)
        paddle.assign(master - self.get_lr() * first / (second.sqrt() + 1e-8) / (1 - power), master)
        paddle.assign(master.astype(param.dtype), param)


def amp_o2(guard: Any, pace: Pace, history: History) -> None:
    net = nn.Sequential(nn.Flatten(), HalfLinear(64, 16), nn.ReLU(), nn.Dropout(0.2), HalfLinear(16, 10))
    net.to(dtype="bfloat16")
    optimizer = MasterAdam(0.01, parameters=net.parameters(), multi_precision=True)
    plain(guard, pace, history, lambda _: optimizer, net)
    assert len(optimizer._master_weights) in (0, 4)  # none where nothing was left to do


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


def _simple(net: Any) -> Any:
    return paddle.optimizer.Adam(0.01, parameters=net.parameters())


def own_sampler(guard: Any, pace: Pace, history: History) -> None:
    dataset = Digits(noise=True, pace=pace)
    options = {"batch_sampler": OwnSampler(), "batch_size": 1, "shuffle": False}
    plain(guard, pace, history, _simple, dataset=dataset, **options)


def distributed_sampler(guard: Any, pace: Pace, history: History) -> None:
    sampler = paddle.io.DistributedBatchSampler(Digits(), 32, num_replicas=2, rank=1, shuffle=True)
    plain(guard, pace, history, _simple, batch_sampler=sampler, batch_size=1, shuffle=False)


def workers(guard: Any, pace: Pace, history: History) -> None:
    dataset = Digits(noise=True, pace=pace)
    plain(guard, pace, history, _simple, mlp(dropout=0.2), dataset=dataset, num_workers=2, epochs=2)


class Stream(paddle.io.IterableDataset):  # type: ignore[misc]  # paddle is not followed
    def __iter__(self) -> Iterator[Any]:
        for index in np.random.permutation(200):
            yield IMAGES[index] + np.float32(0.1 * np.random.rand()), LABELS[index]


def stream(guard: Any, pace: Pace, history: History) -> None:
    plain(guard, pace, history, _simple, mlp(dropout=0.2), dataset=Stream(), shuffle=False)


def lists(guard: Any, pace: Pace, history: History) -> None:
    """No DataLoader: a list of batches, and then a generator function."""
    batches = [(paddle.to_tensor(IMAGES[i : i + 32]), paddle.to_tensor(LABELS[i : i + 32])) for i in range(0, 256, 32)]

    def generated() -> Iterator[Any]:
        for i in np.random.permutation(8):
            yield batches[i]

    net = mlp(dropout=0.2)
    optimizer = _simple(net)
    guard.keep(history=history)
    for data in (batches, generated):
        for step, batch in guard.steps(data, epochs=2):
            loss = loss_of(net, batch, pace)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            history.append((step, float(loss).hex()))


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
