"""What is exported is what plain Paddle loads, and trains on with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# One training in two halves; plain Paddle alone plays the second one from the exported files.
COMMON = """
import json, sys
import paddle
paddle.seed(3)
data = [paddle.randn([4, 6]) for _ in range(12)]
class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = paddle.nn.Linear(6, 8)
        self.norm = paddle.nn.BatchNorm1D(8)
        self.head = paddle.nn.Linear(8, 1)
        self.register_buffer("scratch", paddle.zeros([3]), persistable=False)
    def forward(self, x):
        return self.head(self.norm(self.body(x)))
net = Net()
rate = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.StepDecay(0.1, 3), 4, 0.0, 0.1)
optimizer = paddle.optimizer.KIND(rate, parameters=net.parameters())
losses = []
def train(batches):
    for batch in batches:
        loss = net(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        rate.step()
        losses.append(float(loss).hex())
"""
OURS = (
    COMMON
    + """
from jupyter_paddle_gpu import guard
guard.install("snapshots", every="off")
train(data[:6])
guard.save()
train(data[6:])
print(json.dumps(losses[6:]))
"""
)
PLAIN = (
    COMMON
    + """
assert "jupyter_paddle_gpu" not in sys.modules
state = paddle.load("out/model.pdparams")
assert set(state) == set(net.state_dict()), sorted(state)
net.set_state_dict(state)
optimizer.set_state_dict(paddle.load("out/model.pdopt"))
train(data[6:])
print(json.dumps(losses))
"""
)


def run(directory: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=directory, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["Adam", "Momentum"])
def test_plain_paddle_goes_on_from_an_export(tmp_path: Path, kind: str) -> None:
    expected = run(tmp_path, "-c", OURS.replace("KIND", kind))
    command = ("-m", "jupyter_paddle_gpu.admin.app", "snapshots", "export", "--of", "snapshots", "--to", "out/model")
    shown = run(tmp_path, *command)
    assert "model.pdparams" in shown
    assert "model.pdopt" in shown
    assert json.loads(run(tmp_path, "-c", PLAIN.replace("KIND", kind))) == json.loads(expected)
    again = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=tmp_path)
    assert again.returncode == 2
    assert "is there already" in again.stderr
