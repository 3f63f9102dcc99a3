"""The cells that a notebook runs in a Pod: data made from a seed, a small network, a history."""

from __future__ import annotations

SETUP = """
import numpy as np, paddle, random
from paddle import nn
from jupyter_paddle_gpu import guard

paddle.seed(7); np.random.seed(7); random.seed(7)
images = np.random.rand(512, 1, 8, 8).astype("float32")
labels = np.random.randint(0, 10, (512,))
dataset = paddle.io.TensorDataset([paddle.to_tensor(images), paddle.to_tensor(labels)])
loader = paddle.io.DataLoader(dataset, batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Conv2D(1, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.25), nn.Linear(512, 10)
)
rate = paddle.optimizer.lr.CosineAnnealingDecay(0.01, T_max=60)
optimizer = paddle.optimizer.AdamW(rate, parameters=model.parameters(), weight_decay=0.01)
history = []
get_ipython().run_line_magic("paddle_gpu", "keep history")
"""

# pause_s: a step long enough that an urgent Pod can come in the middle; epochs: 16 steps each
TRAIN = """
import time
for step, (image, label) in guard.steps(loader, epochs=epochs):
    loss = nn.functional.cross_entropy(model(image), label)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    rate.step()
    history.append((step, float(loss).hex()))
    print("step", step, flush=True)
    time.sleep(pause_s)
"""
