"""Where paddle meets the gate: every optimizer's update passes it, whenever paddle was or will be imported."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from jupyter_paddle_gpu.checkpoint.arrival import on_arrival
from jupyter_paddle_gpu.checkpoint.gate import Gate
from jupyter_paddle_gpu.checkpoint.registry import REGISTRY

_APPLIES = {"_apply_optimize", "step", "super"}  # what a step calls that leaves the moving to others
_MARK = "__paddle_gpu_original__"


Fit = Callable[[Callable[..., Any], Any, Any, tuple[Any, ...], dict[str, Any]], Any]


def install(gate: Gate, fit: Fit, ending: Callable[[], bool]) -> None:
    """Let every update of this process pass ``gate``, at once or when paddle is imported; the last gate counts.

    ``fit`` is called in the place of paddle.Model.fit, with that, its module, the model and the arguments; ``ending``
    when a data-loading worker has died: whether this process ends as well. Importing paddle is not done here.
    """

    late = "paddle" in sys.modules

    def patch(paddle: Any) -> None:
        REGISTRY.attend(paddle.nn.Layer, paddle.optimizer.Optimizer, paddle.amp.grad_scaler.AmpScaler, late=late)
        paddle.optimizer.Optimizer._paddle_gpu_first = 0  # the gate's moves at its first and last update; 0: none
        paddle.optimizer.Optimizer._paddle_gpu_last = 0
        for cls in _family(paddle.optimizer.Optimizer):
            _gate_class(cls, gate)
        _watch_hands(paddle.Tensor, gate)
        _lead_fit(paddle.hapi.model, fit)
        _bear_with_workers(paddle.base.core, ending)

    on_arrival("paddle", patch)


def _family(cls: type) -> Iterator[type]:
    yield cls
    child: type
    for child in cls.__subclasses__():
        yield from _family(child)


def _gate_class(cls: type, gate: Gate) -> None:
    for name in ("step", "minimize", "_apply_optimize"):
        method = cls.__dict__.get(name)
        if not callable(method):
            continue
        original = getattr(method, _MARK, method)
        code = inspect.unwrap(original).__code__
        if name == "_apply_optimize" or (name == "step" and not _APPLIES & set(code.co_names)):
            update = gate.around(original)  # LBFGS moves its parameters in step itself
            setattr(update, _MARK, original)
            setattr(cls, name, update)
        else:
            gate.steps.add(code)


def _lead_fit(module: Any, lead: Fit) -> None:
    original = getattr(module.Model.fit, _MARK, module.Model.fit)

    @functools.wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        return lead(original, module, self, args, kwargs)

    setattr(fit, _MARK, original)
    module.Model.fit = fit


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


def _bear_with_workers(core: Any, ending: Callable[[], bool]) -> None:
    """A SIGTERM to the whole group ends the workers of a DataLoader at once, and paddle's handler for that raises
    wherever the main thread is: not in the middle of an eviction."""
    original = getattr(core._throw_error_if_process_failed, _MARK, core._throw_error_if_process_failed)

    @functools.wraps(original)
    def throw() -> None:
        try:
            original()
        except SystemError:
            if not ending():
                raise

    setattr(throw, _MARK, original)
    core._throw_error_if_process_failed = throw
