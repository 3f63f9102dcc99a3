"""What protection costs a training step: the gate around the update, and the boundary of guard.steps."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.benchmarks.table import Figure

STEP_S = 0.001
ROUNDS = 60  # short ones: the quickest is the one that nothing disturbed

# Loops whose body is an update that does nothing, called as Optimizer.step calls it: what is left is what we add.
LOOPS = """
import json, sys, time
import paddle
from jupyter_paddle_gpu.checkpoint.training import Training

training = Training()
training.install()

class Bare:
    _paddle_gpu_first = _paddle_gpu_last = 0

    def step(self):
        self._apply_optimize(loss=None, startup_program=None, params_grads=[], param_group_idx=0)

    def _apply_optimize(self, loss, startup_program, params_grads, param_group_idx=0):
        pass

class Gated(Bare):
    _apply_optimize = training.gate.around(Bare._apply_optimize)

COUNT, ROUNDS = 3_000, int(sys.argv[1])
data = list(range(COUNT))

def seconds(walk, optimizer):
    begun = time.perf_counter()
    for step, item in walk(data):
        optimizer.step()
    return (time.perf_counter() - begun) / COUNT

times = [
    (seconds(enumerate, Bare()), seconds(enumerate, Gated()), seconds(training.steps, Gated())) for _ in range(ROUNDS)
]
print(json.dumps(times))
"""


def measure() -> list[Figure]:
    done = subprocess.run([sys.executable, "-c", LOOPS, str(ROUNDS)], capture_output=True, text=True, check=True)
    bare, gated, guarded = zip(*json.loads(done.stdout.splitlines()[-1]), strict=True)
    gate_us = 1e6 * (min(gated) - min(bare))
    whole_us = 1e6 * (min(guarded) - min(bare))
    share = whole_us * 1e-6 / STEP_S
    return [
        Figure("gate around an update", gate_us, "µs", "< 1 µs", gate_us < 1),
        Figure("protection of a 1 ms step", 100 * share, "%", "< 0.1 %", share < 0.001, f"{whole_us:.2f} µs a step"),
    ]
