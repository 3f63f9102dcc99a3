"""What protection costs a training step: the gate around the update, and the boundary of guard.steps."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from tests.benchmarks.table import Figure

STEP_S = 0.001
ROUNDS = 9

# Loops whose body does nothing but pass the gate, as an update does: what is left is what we add to a step.
LOOPS = """
import json, sys, time
import paddle
from jupyter_paddle_gpu.checkpoint.training import Training

training = Training()
training.install()
net = paddle.nn.Linear(8, 8)
optimizer = paddle.optimizer.SGD(parameters=net.parameters())
net(paddle.ones([1, 8])).sum().backward()
optimizer.step()
COUNT, ROUNDS = 20_000, int(sys.argv[1])
gate, data = training.gate, list(range(COUNT))

def bare():
    begun = time.perf_counter()
    for step, item in enumerate(data):
        pass
    return (time.perf_counter() - begun) / COUNT

def gated():
    begun = time.perf_counter()
    for step, item in enumerate(data):
        if gate.enter():
            gate.leave(optimizer)
    return (time.perf_counter() - begun) / COUNT

def guarded():
    begun = time.perf_counter()
    for step, item in training.steps(data):
        if gate.enter():
            gate.leave(optimizer)
    return (time.perf_counter() - begun) / COUNT

times = [(bare(), gated(), guarded()) for _ in range(ROUNDS)]
print(json.dumps(times))
"""


def measure() -> list[Figure]:
    done = subprocess.run([sys.executable, "-c", LOOPS, str(ROUNDS)], capture_output=True, text=True, check=True)
    times = json.loads(done.stdout.splitlines()[-1])
    gate_us = 1e6 * statistics.median(gated - bare for bare, gated, _ in times)
    whole_us = 1e6 * statistics.median(guarded - bare for bare, _, guarded in times)
    share = whole_us * 1e-6 / STEP_S
    return [
        Figure("gate around an update", gate_us, "µs", "< 1 µs", gate_us < 1),
        Figure("protection of a 1 ms step", 100 * share, "%", "< 0.1 %", share < 0.001, f"{whole_us:.2f} µs a step"),
    ]
