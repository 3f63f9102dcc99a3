"""Mixed precision."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import paddle
from paddle import nn

from tests.checkpoint.harness import Pace
from tests.checkpoint.kinds.base import History, loader_of, loss_of, mlp, plain


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
