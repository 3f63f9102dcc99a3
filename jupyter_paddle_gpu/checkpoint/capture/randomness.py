"""The random state of Paddle's generators."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

from jupyter_paddle_gpu.checkpoint.capture.winding import engine_text, wind

_core = paddle.framework.core


def take() -> dict[str, Any]:
    """Return the state of every generator of this process's devices; a few microseconds on a CPU."""
    states = {"cpu": _core.default_cpu_generator().get_state()}
    if paddle.is_compiled_with_cuda():
        for i in range(_core.get_cuda_device_count()):
            states[f"gpu:{i}"] = _core.default_cuda_generator(i).get_state()
    return states


def plain(states: dict[str, Any]) -> dict[str, Any]:
    """Return the states as numbers and arrays."""
    return {device: _plain(state) for device, state in states.items()}


def _plain(state: Any) -> list[Any]:
    device, seed, offset, *engine = state.__getstate__()
    codes = engine[0] if engine else list(engine_text(state).encode())
    return [device, seed, offset, np.array(codes, np.int64)]


def give(states: dict[str, Any]) -> tuple[str, ...]:
    """Set the generators to plain states; returns the devices that are not there."""
    missing = []
    for device, values in states.items():
        generator = _generator(device)
        if generator is None:
            missing.append(device)
        elif not _set(generator, device, values):
            missing.append(f"{device} (too many numbers ago for Paddle {paddle.__version__})")
    return tuple(missing)


def _set(generator: Any, name: str, values: list[Any]) -> bool:
    device, seed, offset, engine = values
    kind = _core.GeneratorState
    state = kind.__new__(kind)
    whole = len(generator.get_state().__getstate__()) == 4  # since 3.0
    state.__setstate__((device, seed, offset, *([[int(part) for part in engine]] if whole else [])))
    generator.set_state(state)
    return whole or name != "cpu" or wind(generator, bytes(int(part) for part in engine).decode())


def _generator(device: str) -> Any:
    if device == "cpu":
        return _core.default_cpu_generator()
    index = int(device.partition(":")[2])
    if not paddle.is_compiled_with_cuda() or index >= _core.get_cuda_device_count():
        return None
    return _core.default_cuda_generator(index)
