"""One moment of a training as a State: what the update moves as live memory, the rest as it was at a boundary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import paddle

from jupyter_paddle_gpu.checkpoint.capture import optimizers, tensors
from jupyter_paddle_gpu.checkpoint.capture.inventory import Inventory, Network
from jupyter_paddle_gpu.checkpoint.keep import Encoder
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State


@dataclass(frozen=True)
class Moment:
    """The small state at a boundary; ``moving`` by network and name."""

    moving: list[dict[str, RawTensor]] = field(default_factory=list)
    rates: list[Any] = field(default_factory=list)
    scalers: list[dict[str, Any]] = field(default_factory=list)


def take(inventory: Inventory) -> Moment:
    """Copy the small state now."""
    return Moment(
        moving=[
            {name: tensors.copy(place[key]) for name, (place, key) in network.moving.items() if place[key] is not None}
            for network in inventory.networks
        ],
        rates=[optimizers.rate(item.optimizer) for item in inventory.trained],
        scalers=[dict(scaler.state_dict()) for scaler in inventory.scalers],
    )


def compose(inventory: Inventory, moment: Moment, needed: set[int]) -> State:
    """Return the training's state. ``needed``: numbers of the optimizers without which a restore makes no sense.

    The tensors that the update moves are live memory.
    """
    into: dict[str, RawTensor] = {}
    structure: dict[str, Any] = {"paddle": paddle.__version__}
    structure["networks"] = [
        _network(network, number, moment, into) for number, network in enumerate(inventory.networks)
    ]
    structure["optimizers"] = []
    for number, item in enumerate(inventory.trained):
        for network, name, param in item.params:
            if network < 0:
                into[f"optimizers.{number}.param.{name}"] = tensors.live(param)
        structure["optimizers"].append(
            {
                "kind": type(item.optimizer).__name__,
                "params": [[network, name] for network, name, _ in item.params],
                "needed": number in needed,
                **optimizers.heavy(item, number, into),
            }
        )
    small = Encoder("boundary.", into)
    structure["rates"] = small.encode(moment.rates, "rates")
    structure["scalers"] = small.encode(moment.scalers, "scalers")
    return State(into, structure, _frozen(inventory))


def _frozen(inventory: Inventory) -> frozenset[str]:
    """Return the names of the parameters that no update moves."""
    moved = {id(param) for item in inventory.trained for _, _, param in item.params if not param.stop_gradient}
    return frozenset(
        f"networks.{number}.{name}"
        for number, network in enumerate(inventory.networks)
        for name, param in network.params.items()
        if id(param) not in moved
    )


def _network(network: Network, number: int, moment: Moment, into: dict[str, RawTensor]) -> dict[str, Any]:
    for name, param in network.params.items():
        into[f"networks.{number}.{name}"] = tensors.live(param)
    for name, raw in moment.moving[number].items():
        into[f"networks.{number}.{name}"] = raw
    parts = list(network.layer.named_sublayers(include_self=True))
    return {
        "kind": network.kind,
        "unsaved": [_below(name, key) for name, part in parts for key in part._non_persistable_buffer_names_set],
        "evaluating": [name for name, part in parts if not part.training],
        "frozen": [name for name, param in network.layer.named_parameters() if param.stop_gradient],
        "graded": [name for name, param in network.layer.named_parameters() if _graded(param)],
    }


def _below(part: str, key: str) -> str:
    return f"{part}.{key}" if part else key


def _graded(param: Any) -> bool:
    """Whether a parameter has a gradient that stays when it is cleared: a sparse one goes."""
    gradient = param._grad_ivar()
    return gradient is not None and not gradient.is_selected_rows()


def pending_gradients(inventory: Inventory) -> bool:
    """Whether some parameter has a gradient that no update has used yet, given that none came since the boundary."""
    return any(
        (gradient := param._grad_ivar()) is not None and tensors.moved(gradient)
        for item in inventory.trained
        for _, _, param in item.params
        if not param.stop_gradient
    )


def versions(inventory: Inventory) -> int:
    """Return a number that changes when somebody assigns to a parameter outside of an update."""
    return sum(param.inplace_version for network in inventory.networks for param in network.params.values())


def frozen_nbytes(inventory: Inventory) -> int:
    """Return the bytes of the parameters that no update moves."""
    names = _frozen(inventory)
    return sum(
        param.size * param.element_size()
        for number, network in enumerate(inventory.networks)
        for name, param in network.params.items()
        if f"networks.{number}.{name}" in names
    )


def nbytes(inventory: Inventory) -> int:
    """Return the bytes of what the update moves."""
    return sum(tensor.size * tensor.element_size() for tensor in inventory.tensors())
