"""A small training with something of everything: what it has after five steps, and what it does in five more."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import nn

from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.checkpoint.training import Training
from jupyter_paddle_gpu.core.notice import Cause

Digest = dict[str, Any]
STEPS, SAVED = 10, 5


class Net(nn.Layer):  # type: ignore[misc]  # paddle is not followed
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6, sparse=True)
        self.norm = nn.BatchNorm1D(6)
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(6, 1)
        for param in self.norm.parameters():
            param.stop_gradient = True

    def forward(self, tokens: Any) -> Any:
        x = self.norm(self.embedding(tokens).mean(axis=1))
        return self.out(self.drop(self.second(nn.functional.relu(self.first(x)))))


class Run:
    """The training of this process, built anew."""

    def __init__(self, seed: int) -> None:
        paddle.seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        self.training = Training()
        self.training.install()
        self.net = Net()
        self.rate = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.CosineAnnealingDecay(0.05, 7), 3, 0.0, 0.05)
        clip = nn.ClipGradByGlobalNorm(1.0)
        self.optimizer = paddle.optimizer.Adam(self.rate, parameters=self.net.parameters(), grad_clip=clip)
        tokens = (np.arange(STEPS * 8 * 5).reshape(-1, 5) * 7 % 11).astype("int64")
        dataset = paddle.io.TensorDataset([paddle.to_tensor(tokens)])
        self.loader = paddle.io.DataLoader(dataset, batch_size=8, shuffle=True)
        self.history: list[float] = []
        self.training.keep(history=self.history)

    def go_on(self, store: Store | None = None) -> None:
        """Train to the end; save into ``store`` on the way."""
        for step, (tokens,) in self.training.steps(self.loader):
            if store is not None and step == SAVED:
                with self.training.frozen(1.0) as frozen:
                    store.save(frozen.state, position=frozen.position, cause=Cause.MANUAL, inexact=frozen.inexact)
            loss = self.net(tokens).square().mean() * (1 + 0.01 * np.random.rand() + 0.01 * random.random())
            loss.backward()
            self.optimizer.step()
            self.optimizer.clear_grad()
            self.rate.step()
            self.history.append(float(loss))

    def digest(self) -> Digest:
        """Return what the snapshot must bring back, exactly."""
        tensors = {**self.net.state_dict(), **_numbered(self.optimizer)}
        return {
            "tensors": {name: _digest(tensor) for name, tensor in sorted(tensors.items())},
            "rate": self.optimizer.get_lr(),
            "numpy": np.random.rand(),
            "python": random.random(),
            "history": list(self.history),
        }


def _numbered(optimizer: Any) -> Digest:
    """Name the accumulators by the number of their parameter: Paddle's names are others in each process."""
    numbers = {param.name: number for number, param in enumerate(optimizer._parameter_list)}
    return {
        f"{slot}.{numbers[name]}": value
        for slot, group in optimizer._accumulators.items()
        for name, value in group.items()
    }


def _digest(tensor: Any) -> str:
    return hashlib.sha256(tensor.numpy().tobytes()).hexdigest()[:16]


def train(directory: Path) -> Digest:
    """Train, save in the middle, and return what a resume must find and do."""
    run = Run(seed=5)
    run.go_on(Store(directory))
    return resumed(directory) | {"losses": run.history}


def resumed(directory: Path) -> Digest:
    """Build the training anew, restore the snapshot, and return what is there and what it does."""
    run = Run(seed=6)
    run.training.restore(Store(directory).load()[1])
    drawn = np.random.get_state(), random.getstate()
    found = run.digest()
    np.random.set_state(drawn[0])
    random.setstate(drawn[1])
    run.go_on()
    return found | {"losses": run.history}
