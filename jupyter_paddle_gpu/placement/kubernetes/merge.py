"""Merge two objects of Kubernetes as its strategic merge does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_paddle_gpu.core.errors import RequestError

_KEYS = {
    "containers": "name", "initContainers": "name", "env": "name", "volumes": "name", "imagePullSecrets": "name",
    "volumeMounts": "mountPath", "ports": "containerPort", "topologySpreadConstraints": "topologyKey",
}  # fmt: skip  # lists whose items are told apart by a field; other lists are replaced whole


def merged(base: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with ``ours`` laid over it; neither is changed. Where both name a plain value, ours holds.

    Raises RequestError where an item of ``base`` lacks the field by which it is told apart.
    """
    result = dict(base)
    for name, value in ours.items():
        result[name] = _laid_over(name, base[name], value) if name in base else value
    return result


def _laid_over(name: str, base: Any, ours: Any) -> Any:
    if isinstance(base, Mapping) and isinstance(ours, Mapping):
        return merged(base, ours)
    if name in _KEYS and isinstance(base, Sequence) and isinstance(ours, Sequence):
        if not all(isinstance(item, Mapping) and _KEYS[name] in item for item in base):
            raise RequestError(
                f"An item of {name!r} in the template of the Pod has no {_KEYS[name]!r}",
                "Ask whoever runs the cluster to add it.",
            )
        return _merged_list(_KEYS[name], base, ours)
    return ours


def _merged_list(key: str, base: Sequence[Any], ours: Sequence[Any]) -> list[Any]:
    """Keep the order of ``base``; items of ours that it lacks come after."""
    by_key = {item[key]: item for item in ours}
    names = {item[key] for item in base}
    kept = [merged(item, by_key[item[key]]) if item[key] in by_key else item for item in base]
    return kept + [item for item in ours if item[key] not in names]
