"""An optimizer's state under the names of the parameters that it belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature, unwrap
from typing import Any

import numpy as np
import paddle
from paddle.base.layer_helper import LayerHelper
from paddle.optimizer.lr import LRScheduler

from jupyter_paddle_gpu.checkpoint.capture import tensors
from jupyter_paddle_gpu.checkpoint.capture.inventory import Trained
from jupyter_paddle_gpu.checkpoint.keep import Decoder, Encoder, is_tensor, settle
from jupyter_paddle_gpu.checkpoint.state import RawTensor

LBFGS = paddle.optimizer.LBFGS
Optimizer = paddle.optimizer.Optimizer
# every name that Paddle's base class uses: what else an optimizer holds is its own
_COMMON = {name for method in vars(Optimizer).values() if callable(method) for name in unwrap(method).__code__.co_names}


def heavy(item: Trained, number: int, into: dict[str, RawTensor]) -> dict[str, Any]:
    """Put the state that only an update moves into ``into``, as live memory, and return its structure.

    ``slots`` lists (accumulator, index of the parameter, of the master weight); ``masters`` the indices of those;
    ``variables`` are the names that Paddle gave to parameters and slots in this process, for an export.
    """
    optimizer, prefix = item.optimizer, f"optimizers.{number}."
    indices = {param.name: i for i, (_, _, param) in enumerate(item.params)}
    masters = getattr(optimizer, "_master_weights", {})
    of_master = {weight.name: indices[name] for name, weight in masters.items() if name in indices}
    slots, variables = [], []
    for slot, group in optimizer._accumulators.items():
        for name, value in group.items():
            index, master = (of_master[name], True) if name in of_master else (indices.get(name, -1), False)
            if index >= 0:
                slots.append([_plain_slot(optimizer, slot), index, master])
                variables.append(value.name)
                into[prefix + slot_name(item.params, _plain_slot(optimizer, slot), index)] = tensors.live(value)
    for name, weight in masters.items():
        if name in indices:
            into[prefix + slot_name(item.params, "master", indices[name])] = tensors.live(weight)
    structure: dict[str, Any] = {
        "slots": slots,
        "masters": sorted(of_master.values()),
        "variables": {"params": list(indices), "slots": variables},
    }
    if isinstance(optimizer, LBFGS):
        structure["state"] = Encoder(prefix, into, live=True).encode(dict(optimizer.state), "state")
    if own := {name: value for name, value in _own(optimizer).items() if _is_number(value)}:
        structure["own"] = Encoder(prefix, into, live=True).encode(own, "own")
    return structure


def _own(optimizer: Any) -> dict[str, Any]:
    """Return what an optimizer of somebody else's keeps beside its accumulators: counters, tensors of its own.

    What its constructor is given is not state, and Paddle's own ones keep nothing else.
    """
    kind = type(optimizer)
    if kind.__module__.startswith("paddle.optimizer."):
        return {}
    given = {name.strip("_") for cls in kind.__mro__ if "__init__" in vars(cls) for name in signature(cls).parameters}
    return {
        name: value
        for name, value in vars(optimizer).items()
        if name not in _COMMON and name.strip("_") not in given and not name.startswith("_paddle_gpu")
    }


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) or isinstance(value, np.ndarray) or is_tensor(value)


def inexact(item: Trained) -> list[str]:
    """Return a sentence for each attribute of an optimizer whose tensors no snapshot holds."""
    return [
        f"{type(item.optimizer).__name__} keeps tensors in its attribute {name}, which a snapshot does not hold: "
        "let _add_accumulator make them, or keep them with guard.keep"
        for name, value in _own(item.optimizer).items()
        if isinstance(value, (dict, list, tuple)) and any(_is_number(part) for part in _parts(value))
    ]


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def slot_name(params: Sequence[Sequence[Any]], slot: str, index: int) -> str:
    """Return the lasting name of a piece of state: the accumulator and the parameter as it was saved."""
    network, name = params[index][:2]
    return f"{slot}.{network}.{name}" if network >= 0 else f"{slot}.{name}"


def _plain_slot(optimizer: Any, slot: str) -> str:
    """Accumulators carry the optimizer's own name where it has one, which need not be the same next time."""
    name = optimizer._name
    return slot[len(name) + 1 :] if name and slot.startswith(f"{name}_") else slot


def rate(optimizer: Any) -> Any:
    """Return the learning rate: a number, or the scheduler's state as plain values."""
    scheduler = optimizer._learning_rate
    return schedule(scheduler) if isinstance(scheduler, LRScheduler) else float(scheduler)


def schedule(scheduler: Any) -> dict[str, Any]:
    """Return what a scheduler remembers, with the schedulers inside it."""
    values = dict(scheduler.state_dict())
    for name, value in vars(scheduler).items():
        if isinstance(value, LRScheduler):
            values[f"{name}/"] = schedule(value)
        elif name in ("T_cur", "T_i", "cooldown_counter", "best", "num_bad_epochs"):  # missing in paddle's own list
            values[name] = value
    return {name: value for name, value in values.items() if not name.endswith("_LR")}


def set_rate(optimizer: Any, value: Any) -> None:
    """Put back what ``rate`` returned. The caller has checked that both are numbers, or both schedulers."""
    if isinstance(value, Mapping):
        _set_schedule(optimizer._learning_rate, value)
    elif float(optimizer._learning_rate) != value:
        optimizer.set_lr(value)


def _set_schedule(scheduler: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if not name.endswith("/"):
            vars(scheduler)[name] = value
        elif isinstance(inner := getattr(scheduler, name[:-1], None), LRScheduler):
            _set_schedule(inner, value)


def differences(item: Trained, number: int, structure: Mapping[str, Any], boundary: Mapping[str, Any]) -> list[str]:
    """Return in what the live optimizer cannot take the saved state."""
    scheduled = isinstance(item.optimizer._learning_rate, LRScheduler)
    if scheduled != isinstance(boundary["rate"], Mapping):
        here, there = ("a scheduler", "a number") if scheduled else ("a number", "a scheduler")
        return [f"{type(item.optimizer).__name__}: the learning rate is {there} in the snapshot, {here} here"]
    if structure["masters"] and not getattr(item.optimizer, "_multi_precision", False):
        return [f"{type(item.optimizer).__name__}: has master weights in the snapshot, none here (multi_precision)"]
    return []


@paddle.no_grad()  # type: ignore[untyped-decorator]  # paddle is not followed
def restore(
    item: Trained, number: int, structure: Mapping[str, Any], saved: Mapping[str, RawTensor], whole: bool = True
) -> None:
    """Give the live optimizer the saved state, made where it does not exist yet, written in place where it does.

    ``whole``: what it has beside that is taken away, and its own numbers are set.
    """
    optimizer, prefix = item.optimizer, f"optimizers.{number}."
    if optimizer.helper is None:  # paddle 2.6 makes it in the first update only, and needs it to make state
        optimizer.helper = LayerHelper(type(optimizer).__name__)
    for index in structure["masters"]:
        weight = optimizer._create_master_weight(item.params[index][2])
        tensors.fill(weight, saved[prefix + slot_name(structure["params"], "master", index)])
    _make_accumulators(item, sorted({index for _, index, _ in structure["slots"]}))
    kept = set()
    for slot, index, master in structure["slots"]:
        raw = saved[prefix + slot_name(structure["params"], slot, index)]
        param = item.params[index][2]
        target = optimizer._master_weights[param.name] if master else param
        full = f"{optimizer._name}_{slot}" if optimizer._name else slot
        value = optimizer._accumulators[full].get(target.name)
        if value is None or tensors.differs(value, raw):
            optimizer._accumulators[full].pop(target.name, None)
            value = optimizer._add_accumulator(slot, target, dtype=_dtype(raw), shape=list(raw.shape))
        tensors.fill(value, raw)
        kept.add((full, target.name))
    if not whole:
        return
    _forget(item, kept)
    if isinstance(optimizer, LBFGS):
        optimizer.state = defaultdict(dict, Decoder(saved).decode(structure["state"]))
    for name, value in Decoder(saved).decode(structure.get("own", {})).items():
        setattr(optimizer, name, settle(getattr(optimizer, name, None), value))


def _make_accumulators(item: Trained, indices: list[int]) -> None:
    """Let the optimizer itself make what an update would have made, on the devices that it wants."""
    params = [item.params[index][2] for index in indices]
    if params:
        block = paddle.static.default_main_program().global_block()
        item.optimizer._create_accumulators(block, params)


def _forget(item: Trained, kept: set[tuple[str, str]]) -> None:
    """Take away state that the snapshot does not have: of parameters that had not been moved yet."""
    optimizer = item.optimizer
    param_of = {weight.name: name for name, weight in getattr(optimizer, "_master_weights", {}).items()}
    for slot, group in optimizer._accumulators.items():
        for name in [name for name in group if (slot, name) not in kept]:
            del group[name]
            getattr(optimizer, "_already_create_accumulator", set()).discard(param_of.get(name, name))


def _dtype(raw: RawTensor) -> Any:
    return tensors.build(RawTensor(raw.dtype, (0,), memoryview(b""))).dtype
