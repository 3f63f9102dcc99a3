"""A snapshot of some number of ranks, for another number of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from jupyter_paddle_gpu.checkpoint.contents import Contents
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.core.errors import SnapshotMismatch


def check_replicated(parts: Iterable[Contents], there: int, here: int) -> None:
    """See that all ranks had the same parameters and optimizer: what trains on any rank from 1 on is rank 0's too.

    ``parts``: the contents of those ranks; ``there`` and ``here`` are the numbers of ranks. Raises SnapshotMismatch.
    """
    for rank, part in enumerate(parts, 1):
        if own := sorted(trained(part) - set(part.shared or ())):
            names = ", ".join(own[:3]) + (", …" if len(own) > 3 else "")
            raise SnapshotMismatch(
                f"The snapshot is of {ranks(there)} that differ, and here {are(here)}: nothing was loaded",
                (f"rank {rank} has its own {names}",),
                f"Start it with {ranks(there)}.",
            )


def trained(part: Contents) -> set[str]:
    """Return the names of the parameters that updates move, and of the optimizers' own tensors."""
    networks = _list(part.structure.get("networks"))
    still = {f"networks.{number}.{name}" for number, each in enumerate(networks) for name in _list(each.get("frozen"))}
    pairs: list[Any] = [pair for item in part.optimizers() for pair in _list(item.get("params"))]
    moved = {f"networks.{network}.{name}" for network, name in pairs} - still  # statistics stand among the parameters
    return {name for name in (*part.entries(), *(part.shared or ())) if name in moved or name.startswith("optimizers.")}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def adapted(state: State, there: int, here: int) -> State:
    """Return rank 0's state of ``there`` ranks for any of ``here``: without random state, and with a position that
    stands at about the same share of the epoch where the ranks share the data."""
    loop: dict[str, Any] = dict(state.structure["loop"])  # type: ignore[call-overload]  # a mapping, as compose made it
    epoch = {"random": {}, "loader": _counted(loop["epoch"].get("loader"))} if loop["epoch"] else {}
    counters = _counters(loop["epoch"].get("loader") if loop["epoch"] else None)
    if loop["position"] and any("nranks" in numbers for numbers in counters):
        step, number, batch = loop["position"]
        loop["position"] = [step, number, batch * there // here]
    loop |= {"random": {}, "epoch": epoch, "loader": _counted(loop["loader"])}
    left_out = (
        f"the random state and the exact position in the data: the snapshot is of {ranks(there)}, here {are(here)}; "
        "the numbers and samples that follow are others",
    )
    return replace(state, structure={**state.structure, "loop": loop}, left_out=left_out)


def _counters(loader: Any) -> list[Mapping[str, Any]]:
    found = loader.get("counters") if isinstance(loader, Mapping) else None
    return [numbers for numbers in found or () if isinstance(numbers, Mapping)]


def _counted(loader: Any) -> dict[str, Any]:
    """Keep the number of the epoch: a sampler's other numbers are of its rank, and of how many there were."""
    counters = [{key: value for key, value in numbers.items() if key == "epoch"} for numbers in _counters(loader)]
    return {"generators": {}, "counters": counters}


def ranks(count: int) -> str:
    """Return ``1 rank`` or ``4 ranks``."""
    return f"{count} rank" if count == 1 else f"{count} ranks"


def are(count: int) -> str:
    """Return ``is 1`` or ``are 4``."""
    return f"is {count}" if count == 1 else f"are {count}"
