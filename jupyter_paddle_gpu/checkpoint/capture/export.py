"""A state as the files that plain Paddle loads: ``.pdparams`` and ``.pdopt``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import paddle

from jupyter_paddle_gpu.checkpoint.capture import tensors
from jupyter_paddle_gpu.checkpoint.capture.optimizers import slot_name
from jupyter_paddle_gpu.checkpoint.keep import Decoder
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.core.errors import SnapshotError, StoreUnwritable

Parts = dict[str, Any]


def export(state: State, target: Path) -> list[Path]:
    """Write ``TARGET.pdparams`` for the network and ``TARGET.pdopt`` for the optimizer, and return what was written.

    Where there are several, each has its number and class in its name: ``TARGET-0-Generator.pdparams``. They hold what
    ``paddle.save(network.state_dict(), …)`` and ``paddle.save(optimizer.state_dict(), …)`` would have written when the
    snapshot was taken: an optimizer's state is found by the names that Paddle gives to parameters, which are the same
    in a process that builds the same networks in the same order.

    Raises SnapshotError where there is nothing to export or a file is there already, StoreUnwritable.
    """
    parts = {**dict(_networks(state)), **dict(_optimizers(state))}
    if not parts:
        raise SnapshotError("The snapshot holds no network", "Only what is kept is in it; restore it instead.")
    files = {target.with_name(target.name + suffix): value for suffix, value in parts.items()}
    if there := [file for file in files if file.exists()]:
        raise SnapshotError(f"{there[0]} is there already", "Choose another name.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for file, value in files.items():
            temporary = file.with_name(f".{file.name}.tmp")
            paddle.save(value, str(temporary))
            temporary.rename(file)
    except OSError as error:
        raise StoreUnwritable(
            f"{target} cannot be written: {error.strerror or error}", "Choose another place."
        ) from None
    return list(files)


def _networks(state: State) -> Iterator[tuple[str, Parts]]:
    networks: Any = state.structure.get("networks", [])
    for number, network in enumerate(networks):
        prefix = f"networks.{number}."
        yield (
            _suffix(number, network["kind"], len(networks)) + ".pdparams",
            {
                name.removeprefix(prefix): tensors.build(raw)
                for name, raw in state.tensors.items()
                if name.startswith(prefix) and name.removeprefix(prefix) not in network["unsaved"]
            },
        )


def _optimizers(state: State) -> Iterator[tuple[str, Parts]]:
    optimizers: Any = state.structure.get("optimizers", [])
    for number, saved in enumerate(optimizers):
        if "state" in saved:
            continue  # LBFGS: Paddle itself cannot load what it saves of it
        values: Parts = {}
        prefix, params = f"optimizers.{number}.", saved["params"]
        for (slot, index, _), variable in zip(saved["slots"], saved["variables"]["slots"], strict=True):
            values[variable] = tensors.build(state.tensors[prefix + slot_name(params, slot, index)])
        if saved["masters"]:
            names = saved["variables"]["params"]
            values["master_weights"] = {
                names[index]: tensors.build(state.tensors[prefix + slot_name(params, "master", index)])
                for index in saved["masters"]
            }
        rates: Any = state.structure["rates"]
        rate = Decoder(state.tensors).decode(rates[number])
        if isinstance(rate, Mapping):
            values["LR_Scheduler"] = _schedule(rate)
        yield _suffix(number, saved["kind"], len(optimizers)) + ".pdopt", values


def _schedule(rate: Mapping[str, Any]) -> Parts:
    """Return a scheduler's state as its own ``state_dict`` has it: LinearWarmup with the scheduler inside it."""
    values = {name: value for name, value in rate.items() if not name.endswith("/")}
    if inner := rate.get("learning_rate/"):
        values["LinearWarmup_LR"] = _schedule(inner)
    return values


def _suffix(number: int, kind: str, count: int) -> str:
    return "" if count == 1 else f"-{number}-{kind}"
