"""What is being trained: the live optimizers, the networks that they move, and the names that outlast a process."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import paddle

from jupyter_paddle_gpu.checkpoint.registry import REGISTRY

DataParallel = paddle.DataParallel


@dataclass
class Network:
    """A network whose parameters an optimizer moves. ``params`` and ``moving`` by structured name.

    ``moving`` are the places of what the forward pass may change: buffers, running statistics, small parameters that
    do not train. A place is a dict and a key: a buffer may be another tensor in the next step.
    """

    layer: Any
    params: dict[str, Any]
    moving: dict[str, tuple[dict[str, Any], str]]

    @property
    def kind(self) -> str:
        return type(self.layer).__name__


@dataclass
class Trained:
    """An optimizer and its parameters, each by network number and name; ``network`` −1: of no network."""

    optimizer: Any
    params: list[tuple[int, str, Any]]
    signature: tuple[Any, ...] = ()

    @property
    def first(self) -> int:
        """Number of its first update; 0: none yet."""
        return int(self.optimizer._paddle_gpu_first)

    @property
    def last(self) -> int:
        return int(self.optimizer._paddle_gpu_last)

    @property
    def in_network(self) -> bool:
        """Whether a network holds its parameters; none does while a function that trained is being left."""
        return any(network >= 0 for network, _, _ in self.params)

    @property
    def age(self) -> tuple[Any, ...]:
        """Sorts optimizers of one signature by when their parameters were made."""
        return _natural(self.params[0][2].name) if self.params else ()


@dataclass
class Inventory:
    """Everything found at one look. Holds what it names: keep it only while a training runs."""

    networks: list[Network] = field(default_factory=list)
    trained: list[Trained] = field(default_factory=list)
    scalers: list[Any] = field(default_factory=list)

    def tensors(self) -> Iterator[Any]:
        """Parameters and optimizer state, for their size."""
        for network in self.networks:
            yield from network.params.values()
        for item in self.trained:
            for group in item.optimizer._accumulators.values():
                yield from group.values()
            yield from getattr(item.optimizer, "_master_weights", {}).values()


def parameters_of(optimizer: Any) -> list[Any]:
    """Return the parameters of all groups, in order."""
    flat: list[Any] = []
    for item in optimizer._parameter_list or []:
        flat.extend(item["params"] if isinstance(item, dict) else [item])
    return flat


def alive() -> WeakSet[Any]:
    """Return the optimizers that there are now."""
    return WeakSet(REGISTRY.optimizers())


def look(fresh_since: int | None = None, among: WeakSet[Any] | None = None) -> Inventory:
    """Find what is being trained.

    ``fresh_since``: a training loop is open and began at this number of updates; where a network was built twice the
    newest counts. None: no loop is open; then it is the one that was trained last. ``among``: only these optimizers.
    """
    layers, optimizers, scalers = _find(among)
    everything = name_all(layers, optimizers, scalers)
    if any(network < 0 for item in everything.trained for network, _, _ in item.params):
        # an optimizer holds itself, and outlives its network until the next collection
        del everything, layers, optimizers, scalers
        gc.collect()
        layers, optimizers, scalers = _find(among)
        everything = name_all(layers, optimizers, scalers)
    chosen = []
    for twins in by_signature(everything.trained):
        chosen.extend(_current(twins, fresh_since))
    return name_all(layers, [item.optimizer for item in chosen], scalers)


def look_at_all() -> Inventory:
    """Find every live optimizer, trained or not: what a snapshot may be restored into."""
    return name_all(*_find())


def _find(among: WeakSet[Any] | None = None) -> tuple[list[Any], list[Any], list[Any]]:
    """Return what is alive and fully made: another thread may be building a network right now."""
    return (
        [layer for layer in REGISTRY.layers() if "_sub_layers" in vars(layer)],
        [
            optimizer
            for optimizer in REGISTRY.optimizers()
            if "_accumulators" in vars(optimizer) and (among is None or optimizer in among)
        ],
        [scaler for scaler in REGISTRY.scalers() if "_enable" in vars(scaler)],
    )


def name_all(layers: list[Any], optimizers: list[Any], scalers: list[Any]) -> Inventory:
    """Give every parameter of these optimizers its network and its name there."""
    inventory = Inventory(scalers=list(scalers))
    with_params = [(optimizer, parameters_of(optimizer)) for optimizer in optimizers]
    with_params = [pair for pair in with_params if pair[1]]
    with_params.sort(key=lambda pair: (type(pair[0]).__name__, _natural(pair[1][0].name)))
    homes = _homes(layers, {id(param) for _, params in with_params for param in params})
    numbers: dict[int, int] = {}
    for optimizer, params in with_params:
        named = []
        for index, param in enumerate(params):
            home = homes.get(id(param))
            if home is None:
                named.append((-1, str(index), param))
                continue
            layer, name = home
            if id(layer) not in numbers:
                numbers[id(layer)] = len(inventory.networks)
                inventory.networks.append(network_of(layer))
            named.append((numbers[id(layer)], name, param))
        kinds = tuple((inventory.networks[n].kind if n >= 0 else "", name) for n, name, _ in named)
        inventory.trained.append(Trained(optimizer, named, (type(optimizer).__name__, kinds)))
    return inventory


def _homes(layers: list[Any], wanted: set[int]) -> dict[int, tuple[Any, str]]:
    """Return for each wanted parameter the outermost layer that holds it, the one that holds most first."""
    inner = {id(child) for layer in layers for child in layer._sub_layers.values() if child is not None}
    inner -= {id(layer._layers) for layer in layers if isinstance(layer, DataParallel)}
    roots: list[tuple[Any, ...]] = []
    for layer in layers:
        if id(layer) in inner or isinstance(layer, DataParallel):
            continue
        held = [(name, param) for name, param in layer.named_parameters() if id(param) in wanted]
        if held:
            roots.append((-len(held), type(layer).__name__, _natural(held[0][1].name), len(roots), layer, held))
    homes: dict[int, tuple[Any, str]] = {}
    for *_, layer, held in sorted(roots, key=lambda root: root[:4]):
        for name, param in held:
            homes.setdefault(id(param), (layer, name))
    return homes


_SMALL = 4096  # elements: copying so few costs less than finding out whether they move


def network_of(layer: Any) -> Network:
    """Return the names of everything that this network holds."""
    moving = {}
    for prefix, part in layer.named_sublayers(include_self=True):
        dot = f"{prefix}." if prefix else ""
        for key, buffer in part._buffers.items():
            if buffer is not None:
                moving[dot + key] = (part._buffers, key)
        for key, param in part._parameters.items():
            if param is not None and param.stop_gradient and (key.startswith("_") or param.size <= _SMALL):
                moving[dot + key] = (part._parameters, key)
    params = {name: param for name, param in layer.named_parameters() if name not in moving}
    return Network(layer, params, moving)


def by_signature(trained: list[Trained]) -> Iterator[list[Trained]]:
    """Yield the optimizers that look alike together, the oldest first."""
    groups: dict[Any, list[Trained]] = {}
    for item in trained:
        groups.setdefault(item.signature, []).append(item)
    for group in groups.values():
        yield sorted(group, key=lambda item: item.age)


def _current(twins: list[Trained], fresh_since: int | None) -> list[Trained]:
    """Leave out what a newer build of the same network has replaced."""
    newest = twins[-1]
    if fresh_since is None:
        newest = max(twins, key=lambda item: (item.last, item.age))
    if not newest.first:
        return [item for item in twins if not item.first]
    in_use = newest.first if fresh_since is None else min(newest.first, fresh_since + 1)
    return [item for item in twins if item is newest or item.last >= in_use]


def _natural(name: str) -> tuple[Any, ...]:
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", name))
