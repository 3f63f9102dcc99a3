"""The cells that the loop's tests run, as a user would write them: handwritten digits, a small network, a history."""

from __future__ import annotations

SETUP = """
%load_ext jupyter_paddle_gpu
import numpy as np, paddle, random
from paddle import nn
from sklearn.datasets import load_digits
from jupyter_paddle_gpu import guard

paddle.seed(7); np.random.seed(7); random.seed(7)
digits = load_digits()
images = (digits.images / 16).astype("float32")[:, None]
dataset = paddle.io.TensorDataset([paddle.to_tensor(images), paddle.to_tensor(digits.target)])
loader = paddle.io.DataLoader(dataset, batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Conv2D(1, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.25), nn.Linear(512, 10)
)
rate = paddle.optimizer.lr.CosineAnnealingDecay(0.01, T_max=60)
optimizer = paddle.optimizer.AdamW(rate, parameters=model.parameters(), weight_decay=0.01)
history = []
%paddle_gpu keep history
"""

# pause_s: a step long enough that an urgent job can come in the middle of a short training
TRAIN = """
import time
for step, (image, label) in guard.steps(loader, epochs=6):
    loss = nn.functional.cross_entropy(model(image), label)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    rate.step()
    history.append((step, float(loss).hex()))
    print("step", step, flush=True)
    time.sleep(pause_s)
"""
