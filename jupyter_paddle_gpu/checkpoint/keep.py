"""Plain values to JSON and tensors, and back: numbers, strings, lists, dicts, arrays and tensors, never pickle."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from jupyter_paddle_gpu.checkpoint.arrays import array_of, raw_array
from jupyter_paddle_gpu.checkpoint.state import RawTensor
from jupyter_paddle_gpu.core.errors import NotKept

_DEPTH = 64
_KINDS = "numbers, strings, lists, dicts, arrays and tensors"


class Encoder:
    """Encodes values; the tensors that they hold are gathered in ``tensors`` under names that begin with ``prefix``.

    ``live``: tensors share the memory of the values, else they are copies. ``lenient``: what a dict holds that cannot
    be encoded is left out.
    """

    def __init__(self, prefix: str, tensors: dict[str, RawTensor], live: bool = False, lenient: bool = False) -> None:
        self._lenient = lenient
        self._prefix = prefix
        self._tensors = tensors
        self._live = live

    def encode(self, value: Any, where: str) -> Any:
        """Return the JSON value. Raises NotKept with the place and the reason."""
        return self._encode(value, where, 0)

    def _encode(self, value: Any, where: str, depth: int) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return value if type(value) in (bool, str, type(None)) else str(value)
        if type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if depth > _DEPTH:
            raise NotKept(f"{where} is nested deeper than {_DEPTH}, or holds itself", "Keep a flat copy of it.")
        if isinstance(value, (list, tuple, deque, Mapping)):
            return self._encode_container(value, where, depth + 1)
        return self._encode_array(value, where)

    def _encode_container(self, value: Any, where: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._encode_mapping(dict(value), where, depth)
        parts = [self._encode(part, f"{where}[{i}]", depth) for i, part in enumerate(list(value))]
        if not isinstance(value, tuple):
            return parts
        if type(value) is not tuple:
            raise NotKept(
                f"{where} is a {type(value).__name__}, which would come back as a plain tuple", "Keep a dict of it."
            )
        return {"$tuple": parts}

    def _encode_mapping(self, value: dict[Any, Any], where: str, depth: int) -> Any:
        if self._lenient:
            return {
                str(key): self._encode(part, f"{where}[{key!r}]", depth) for key, part in value.items() if _fits(part)
            }
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: self._encode(part, f"{where}[{key!r}]", depth) for key, part in value.items()}
        pairs = []
        for key, part in value.items():
            if not isinstance(key, (str, int, float, tuple, bool, type(None))):
                raise NotKept(f"{where} has a key of type {type(key).__name__}", "Use texts or numbers as keys.")
            pairs.append(
                [self._encode(key, f"a key of {where}", depth), self._encode(part, f"{where}[{key!r}]", depth)]
            )
        return {"$dict": pairs}

    def _encode_array(self, value: Any, where: str) -> Any:
        if isinstance(value, complex) and type(value) is complex:
            return {"$complex": [repr(value.real), repr(value.imag)]}
        if isinstance(value, np.generic):
            return self._put(self._raw(np.asarray(value), where), where, "$number")
        if type(value) is np.ndarray:
            return self._put(self._raw(value, where), where, "$array")
        if (raw := raw_tensor(value, self._live)) is not None:
            return self._put(raw, where, "$tensor")
        raise NotKept(
            f"{where} is a {type(value).__module__}.{type(value).__qualname__}; a snapshot holds {_KINDS}",
            "A model, an optimizer or a scheduler that trains is found by itself."
            if hasattr(type(value), "state_dict")
            else "Keep the values that it is made of.",
        )

    def _raw(self, array: np.ndarray[Any, Any], where: str) -> RawTensor:
        try:
            return raw_array(array if self._live else array.copy())
        except NotKept as error:
            raise NotKept(f"{where}: {error.fault}", error.next_step) from None

    def _put(self, raw: RawTensor, where: str, kind: str) -> dict[str, Any]:
        name = f"{self._prefix}{where}"
        while name in self._tensors:
            name += "'"
        self._tensors[name] = raw
        return {kind: name}


def raw_tensor(value: Any, live: bool) -> RawTensor | None:
    """Return a paddle tensor's bytes (a copy unless ``live``); None: it is no tensor."""
    if not is_tensor(value):
        return None
    from jupyter_paddle_gpu.checkpoint.capture import tensors

    return tensors.live(value) if live else tensors.copy(value)


def is_tensor(value: Any) -> bool:
    """Whether it is a paddle tensor, without importing paddle."""
    return type(value).__module__.startswith(("paddle", "builtins")) and hasattr(value, "inplace_version")


def _fits(value: Any) -> bool:
    try:
        Encoder("", {}, live=True).encode(value, "")
    except NotKept:
        return isinstance(value, (dict, list))  # parts of it may
    return True


class Decoder:
    """Makes values of what an Encoder left."""

    def __init__(self, tensors: Mapping[str, RawTensor]) -> None:
        self._tensors = tensors

    def decode(self, data: Any) -> Any:
        """Return new values."""
        if isinstance(data, list):
            return [self.decode(part) for part in data]
        if not isinstance(data, Mapping):
            return data
        marks = [key for key in data if key.startswith("$")]
        if not marks:
            return {key: self.decode(part) for key, part in data.items()}
        return self._decode_marked(marks[0], data)

    def _decode_marked(self, mark: str, data: Mapping[str, Any]) -> Any:
        item = data[mark]
        if mark == "$float":
            return float(item)
        if mark == "$complex":
            return complex(float(item[0]), float(item[1]))
        if mark == "$tuple":
            return tuple(self.decode(part) for part in item)
        if mark == "$dict":
            return {self.decode(key): self.decode(part) for key, part in item}
        if mark == "$tensor":
            from jupyter_paddle_gpu.checkpoint.capture import tensors

            return tensors.build(self._tensors[item])
        array = array_of(self._tensors[item]).copy()
        return array[()] if mark == "$number" else array


def settle(live: Any, value: Any) -> Any:
    """Put ``value`` into the object ``live`` where that can hold it, so that whoever refers to it sees it.

    Returns the object that holds it now: ``live``, or ``value`` where it could not.
    """
    if isinstance(live, dict) and isinstance(value, dict):
        merged = {key: settle(live[key], part) if key in live else part for key, part in value.items()}
        live.clear()
        live.update(merged)
        return live
    if isinstance(live, (list, deque)) and isinstance(value, list):
        old = list(live)
        parts = [settle(old[i], part) if i < len(old) else part for i, part in enumerate(value)]
        live.clear()
        live.extend(parts)
        return live
    if isinstance(live, np.ndarray) and isinstance(value, np.ndarray):
        if live.shape == value.shape and live.dtype == value.dtype and live.flags.writeable:
            live[...] = value
            return live
        return value
    if is_tensor(value) and is_tensor(live):
        from jupyter_paddle_gpu.checkpoint.capture import tensors

        return live if tensors.assign_like(live, value) else value
    return value
