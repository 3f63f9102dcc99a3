"""Where paddle meets the gate: every optimizer's update passes it, whenever paddle was or will be imported."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from jupyter_paddle_gpu.checkpoint.arrival import on_arrival
from jupyter_paddle_gpu.checkpoint.gate import Gate
from jupyter_paddle_gpu.checkpoint.registry import REGISTRY

_MOVING = ("step", "minimize", "_apply_optimize")
_MARK = "__paddle_gpu_original__"


def install(gate: Gate, fitting: Callable[[Any], None] | None = None) -> None:
    """Let every update of this process pass ``gate``, at once or when paddle is imported; the last gate counts.

    ``fitting`` is given the module paddle.hapi.model. Importing paddle is not done here.
    """

    late = "paddle" in sys.modules

    def patch(paddle: Any) -> None:
        REGISTRY.attend(paddle.nn.Layer, paddle.optimizer.Optimizer, paddle.amp.grad_scaler.AmpScaler, late=late)
        for cls in _family(paddle.optimizer.Optimizer):
            _gate_class(cls, gate)
        _watch_hands(paddle.Tensor, gate)
        if fitting is not None:
            fitting(paddle.hapi.model)

    on_arrival("paddle", patch)


def _family(cls: type) -> Iterator[type]:
    yield cls
    child: type
    for child in cls.__subclasses__():
        yield from _family(child)


def _gate_class(cls: type, gate: Gate) -> None:
    for name in _MOVING:
        method = cls.__dict__.get(name)
        if callable(method):
            setattr(cls, name, _gated(getattr(method, _MARK, method), gate))


def _gated(method: Callable[..., Any], gate: Gate) -> Callable[..., Any]:
    enter, leave = gate.enter, gate.leave

    @functools.wraps(method)
    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not enter():
            return method(self, *args, **kwargs)
        try:
            return method(self, *args, **kwargs)
        finally:
            leave(self)

    setattr(update, _MARK, method)
    return update


def _watch_hands(tensor: type, gate: Gate) -> None:
    """``set_value`` changes parameters without a trace in their version."""
    method = tensor.set_value  # type: ignore[attr-defined]  # paddle.Tensor
    method = getattr(method, _MARK, method)
    touch = gate.touch

    @functools.wraps(method)
    def set_value(self: Any, *args: Any, **kwargs: Any) -> Any:
        touch()
        return method(self, *args, **kwargs)

    setattr(set_value, _MARK, method)
    tensor.set_value = set_value  # type: ignore[attr-defined]  # paddle.Tensor
