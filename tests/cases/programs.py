"""Small scripts as users write them, each run to its end in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TRAINING = """
import sys
import numpy as np
import paddle
from jupyter_paddle_gpu import guard

def build(width=8, dtype="float32", depth=1, rule=paddle.optimizer.AdamW):
    paddle.set_default_dtype(dtype)
    hidden = [paddle.nn.Linear(width, width) for _ in range(depth - 1)]
    model = paddle.nn.Sequential(paddle.nn.Linear(4, width), *hidden, paddle.nn.Linear(width, 1))
    return model, rule(0.01, parameters=model.parameters())

def train(model, optimizer, updates):
    losses = []
    for _ in range(updates):
        loss = model(paddle.randn([8, 4])).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss).hex())
    return losses
"""


def finished(place: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in ``place`` to its end."""
    (place / "program.py").write_text(code)
    return subprocess.run(
        [sys.executable, "program.py", *arguments], cwd=place, capture_output=True, text=True, timeout=120
    )


def said(place: Path, code: str, *arguments: str) -> str:
    """Run a script that succeeds; return what it printed."""
    done = finished(place, code, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
