"""The part of a state that fits another model: weights and optimizer state of the parameters that are alike."""

from __future__ import annotations

from typing import Any

import paddle

from jupyter_paddle_gpu.checkpoint.capture import optimizers, tensors
from jupyter_paddle_gpu.checkpoint.capture.inventory import Inventory, Network, Trained
from jupyter_paddle_gpu.checkpoint.capture.restoring import places
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.core.errors import SnapshotMismatch

ELSE = "learning rate, position in the data and random state: they belong to the whole training"


@paddle.no_grad()  # type: ignore[untyped-decorator]  # paddle is not followed
def load(state: State, inventory: Inventory) -> tuple[int, list[str]]:
    """Write what fits into the live networks and optimizers; return the number of tensors and a line for each that did
    not fit. Raises SnapshotMismatch where nothing does, and nothing is written then."""
    saved: Any = state.structure.get("networks", [])
    there = [_tensors_of(state, number) for number in range(len(saved))]
    pairs = _pairs(there, inventory.networks)
    if not pairs:
        names = ", ".join(sorted({network["kind"] for network in saved})) or "no network"
        raise SnapshotMismatch(
            f"Nothing of the snapshot ({names}) fits what is built here; nothing was loaded",
            (),
            "Build the model first.",
        )
    count, lines = 0, []
    fitting: dict[tuple[int, str], Any] = {}  # the live parameter for each saved one, by network and name
    for number, raws in enumerate(there):
        network = pairs.get(number)
        if network is None:
            lines.append(f"{saved[number]['kind']}: no network here is like it")
            continue
        here = places(network)
        for name in sorted({*raws, *here}):
            if text := _difference(name, raws, here):
                lines.append(f"{network.kind}.{name}: {text}")
                continue
            tensors.fill(here[name], raws[name])
            fitting[number, name] = here[name]
            count += 1
    lines += _load_optimizers(state, inventory, fitting)
    return count, [*lines, ELSE]


def _tensors_of(state: State, number: int) -> dict[str, RawTensor]:
    prefix = f"networks.{number}."
    return {name.removeprefix(prefix): raw for name, raw in state.tensors.items() if name.startswith(prefix)}


def _pairs(there: list[dict[str, RawTensor]], networks: list[Network]) -> dict[int, Network]:
    """Return for each saved network the live one that most of its tensors fit; of several alike the newest."""
    scored = []
    for number, raws in enumerate(there):
        for age, network in enumerate(networks):
            here = places(network)
            score = sum(not _difference(name, raws, here) for name in raws)
            scored.append((score, age, number, network))
    pairs: dict[int, Network] = {}
    for score, _, number, network in sorted(scored, key=lambda item: item[:3], reverse=True):
        if score and number not in pairs and all(network is not taken for taken in pairs.values()):
            pairs[number] = network
    return pairs


def _difference(name: str, raws: dict[str, RawTensor], here: dict[str, Any]) -> str:
    if name not in here:
        return "only in the snapshot"
    if name not in raws:
        return "only here"
    return tensors.differs(here[name], raws[name])


def _load_optimizers(state: State, inventory: Inventory, fitting: dict[tuple[int, str], Any]) -> list[str]:
    lines = []
    all_saved: Any = state.structure["optimizers"]
    for number, saved in enumerate(all_saved):
        params = [fitting.get((network, name)) for network, name in saved["params"]]
        wanted = {id(param) for param in params if param is not None}
        item = next((item for item in inventory.trained if _is_for(item, saved["kind"], wanted)), None)
        if item is None:
            lines.append(f"{saved['kind']}: no optimizer of this kind has the parameters that fit")
            continue
        index_of = {id(param): index for index, (_, _, param) in enumerate(item.params)}
        loadable = {index for index, param in enumerate(params) if param is not None and id(param) in index_of}
        as_saved = Trained(
            item.optimizer, [(*name, param) for name, param in zip(saved["params"], params, strict=True)]
        )
        masters = saved["masters"] if getattr(item.optimizer, "_multi_precision", False) else []
        part = {
            **saved,
            "slots": [slot for slot in saved["slots"] if slot[1] in loadable and (not slot[2] or masters)],
            "masters": [index for index in masters if index in loadable],
        }
        optimizers.restore(as_saved, number, part, state.tensors, whole=False)
    return lines


def _is_for(item: Trained, kind: str, wanted: set[int]) -> bool:
    return type(item.optimizer).__name__ == kind and any(id(param) in wanted for _, _, param in item.params)
