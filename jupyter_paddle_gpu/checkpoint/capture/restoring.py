"""A State back into live networks and optimizers: everything is compared first, then nothing can fail half-way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import paddle

from jupyter_paddle_gpu.checkpoint.capture import optimizers, tensors
from jupyter_paddle_gpu.checkpoint.capture.inventory import Inventory, Network, Trained, network_of
from jupyter_paddle_gpu.checkpoint.keep import Decoder
from jupyter_paddle_gpu.checkpoint.state import LEFT_OUT, State
from jupyter_paddle_gpu.core.errors import SnapshotMismatch

_LINES = 40


@dataclass
class Plan:
    """Which live object takes which part of a state; numbers are the state's."""

    state: State
    optimizers: dict[int, Trained] = field(default_factory=dict)
    networks: dict[int, Network] = field(default_factory=dict)
    scalers: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def targets(self) -> tuple[int, ...]:
        """Identify what is written to."""
        return tuple(id(item.optimizer) for item in self.optimizers.values())


def plan(state: State, inventory: Inventory) -> Plan:
    """Find the newest live objects that take the state. Raises SnapshotMismatch with every difference."""
    made = Plan(state)
    saved = list(_of(state, "optimizers"))
    taken: set[int] = set()
    for number in reversed(range(len(saved))):  # the newest build of twins takes the newest of the state
        item = _match(state, number, inventory, taken)
        if item is not None:
            taken.add(id(item.optimizer))
            _add(made, number, item, inventory)
    missing = [number for number in range(len(saved)) if number not in made.optimizers]
    for number in missing:
        in_network = any(network >= 0 for network, _ in saved[number]["params"])
        if saved[number]["needed"] or (in_network and not made.optimizers):
            made.differences.extend(_why_not(state, number, inventory))
        else:
            made.left_out.append(f"{saved[number]['kind']} of {_network_names(state, number)}: not built here")
    _compare(made)
    if made.differences:
        raise _mismatch(made.differences)
    kept = Decoder(state.tensors).decode(state.structure["scalers"])
    live = inventory.scalers[len(inventory.scalers) - len(kept) :]
    made.scalers = list(zip(live, kept, strict=True)) if len(live) == len(kept) else []
    if kept and not made.scalers:
        made.left_out.append("a GradScaler: not built here")
    return made


def _of(state: State, part: str) -> Any:
    return state.structure[part]


def _names(state: State, number: int) -> tuple[Any, ...]:
    networks = _of(state, "networks")
    params = _of(state, "optimizers")[number]["params"]
    return tuple((networks[n]["kind"] if n >= 0 else "", name) for n, name in params)


def _network_names(state: State, number: int) -> str:
    return ", ".join(sorted({kind or "bare parameters" for kind, _ in _names(state, number)}))


def _match(state: State, number: int, inventory: Inventory, taken: set[int]) -> Trained | None:
    signature = (_of(state, "optimizers")[number]["kind"], _names(state, number))
    fitting = [item for item in inventory.trained if item.signature == signature and id(item.optimizer) not in taken]
    return max(fitting, key=lambda item: item.age, default=None)


def _add(made: Plan, number: int, item: Trained, inventory: Inventory) -> None:
    made.optimizers[number] = item
    saved = _of(made.state, "optimizers")[number]
    for (there, _), (here, _, _) in zip(saved["params"], item.params, strict=True):
        if there >= 0 and here >= 0:
            made.networks.setdefault(there, inventory.networks[here])
    made.differences.extend(optimizers.differences(item, number, saved, {"rate": _of(made.state, "rates")[number]}))


def _why_not(state: State, number: int, inventory: Inventory) -> list[str]:
    """Compare with the live optimizer that is nearest."""
    kind, names = _of(state, "optimizers")[number]["kind"], _names(state, number)
    here = [(len(set(names) & set(item.signature[1])), item.age, item) for item in inventory.trained]
    if not here:
        return [f"{kind} of {_network_names(state, number)}: no optimizer is alive here"]
    *_, nearest = max(here, key=lambda entry: entry[:2])
    lines = []
    if nearest.signature[0] != kind:
        lines.append(f"the optimizer is {kind} in the snapshot, {nearest.signature[0]} here")
    there, live = set(names), set(nearest.signature[1])
    lines += [f"{_show(name)}: only in the snapshot" for name in names if name not in live]
    lines += [f"{_show(name)}: only here" for name in nearest.signature[1] if name not in there]
    shapes = dict(zip(nearest.signature[1], (param for _, _, param in nearest.params), strict=True))
    for (network, name), full in zip(_of(state, "optimizers")[number]["params"], names, strict=True):
        raw = state.tensors.get(f"networks.{network}.{name}")
        if full in live and raw is not None and (text := tensors.differs(shapes[full], raw)):
            lines.append(f"{_show(full)}: {text}")
    return lines or ["the parameters stand in another order"]


def _show(name: tuple[str, str]) -> str:
    return f"{name[0]}.{name[1]}" if name[0] else f"parameter {name[1]}"


def _compare(made: Plan) -> None:
    """Compare every tensor of the networks, and of the optimizers' bare parameters."""
    left_out = set(made.state.structure.get(LEFT_OUT, ()))  # type: ignore[call-overload]  # a list of names
    for number, network in made.networks.items():
        prefix = f"networks.{number}."
        there = {name[len(prefix) :]: raw for name, raw in made.state.tensors.items() if name.startswith(prefix)}
        here = {name: tensor for name, tensor in places(network).items() if prefix + name not in left_out}
        for name in sorted(set(there) | set(here)):
            shown = f"{network.kind}.{name}"
            if name not in here:
                made.differences.append(f"{shown}: only in the snapshot")
            elif name not in there:
                made.differences.append(f"{shown}: only here")
            elif text := tensors.differs(here[name], there[name]):
                made.differences.append(f"{shown}: {text}")
    for number, item in made.optimizers.items():
        for network_number, name, param in item.params:
            raw = made.state.tensors.get(f"optimizers.{number}.param.{name}") if network_number < 0 else None
            if raw is not None and (text := tensors.differs(param, raw)):
                made.differences.append(f"parameter {name}: {text}")


def places(network: Network) -> dict[str, Any]:
    """Return the live tensors of a network by name."""
    fresh = network_of(network.layer)
    return {**fresh.params, **{name: place[key] for name, (place, key) in fresh.moving.items()}}


def _mismatch(lines: list[str]) -> SnapshotMismatch:
    unique = list(dict.fromkeys(lines))
    more = [f"… and {len(unique) - _LINES} more"] if len(unique) > _LINES else []
    return SnapshotMismatch(
        "The snapshot belongs to another model or optimizer; nothing was loaded",
        (*unique[:_LINES], *more),
        "Build the model and the optimizer as they were, restore another snapshot, or load what fits: "
        "%paddle_gpu restore --partial, guard.restore(partial=True).",
    )


@paddle.no_grad()  # type: ignore[untyped-decorator]  # paddle is not followed
def apply(made: Plan) -> None:
    """Write the state into the live objects; the random state and what is kept are the caller's."""
    state = made.state
    for number, network in made.networks.items():
        for name, tensor in places(network).items():
            if (raw := state.tensors.get(f"networks.{number}.{name}")) is not None:  # else left out, see LEFT_OUT
                tensors.fill(tensor, raw)
        _set_flags(network, _of(state, "networks")[number])
    decoder = Decoder(state.tensors)
    for number, item in made.optimizers.items():
        for network_number, name, param in item.params:
            if network_number < 0:
                tensors.fill(param, state.tensors[f"optimizers.{number}.param.{name}"])
        optimizers.restore(item, number, _of(state, "optimizers")[number], state.tensors)
        optimizers.set_rate(item.optimizer, decoder.decode(_of(state, "rates")[number]))
    for scaler, values in made.scalers:
        if values:
            scaler.load_state_dict(values)


def _set_flags(network: Network, saved: Mapping[str, Any]) -> None:
    evaluating, frozen, graded = (set(saved[key]) for key in ("evaluating", "frozen", "graded"))
    for name, part in network.layer.named_sublayers(include_self=True):
        part.training = name not in evaluating
    for name, param in network.layer.named_parameters():
        param.stop_gradient = name in frozen
        if name in graded:  # a cleared gradient is zero, and Adam still moves its parameter
            param.grad = paddle.zeros_like(param)
        elif param._grad_ivar() is not None:
            param.clear_gradient(False)
