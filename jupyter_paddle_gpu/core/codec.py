"""Dataclasses of ours to JSON values and back, strictly: an unknown field or a wrong type is an error that names it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

from jupyter_paddle_gpu.core.errors import PaddleGpuError, WireError

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return ``value`` (dataclasses, enums, paths, tuples, mappings of them) as what ``json.dumps`` takes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    return value


def from_plain(cls: type[T], data: Any) -> T:
    """Build the dataclass ``cls`` from decoded JSON. Raises WireError that names the field."""
    if not isinstance(data, dict):
        raise WireError(f"{cls.__name__} needs an object, not {type(data).__name__}")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]  # callers pass dataclasses
    if unknown := sorted(set(data) - set(fields)):
        raise WireError(f"{cls.__name__} has no field {', '.join(map(repr, unknown))}")
    values = {name: _convert(hints[name], item, f"{cls.__name__}.{name}") for name, item in data.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise WireError(f"{cls.__name__}: {error}") from None
    except PaddleGpuError as error:  # a value that its class refuses
        raise WireError(f"{cls.__name__}: {error.fault}", error.next_step) from None


def _convert(hint: Any, item: Any, where: str) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return item
    if origin in (Union, types.UnionType):
        return _convert_union(args, item, where)
    if origin is tuple:
        if not isinstance(item, list):
            raise WireError(f"{where} needs a list")
        return tuple(_convert(args[0], part, where) for part in item)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(item, dict):
            raise WireError(f"{where} needs an object")
        return {key: _convert(args[1], part, where) for key, part in item.items()}
    return _convert_scalar(hint, item, where)


def _convert_union(options: tuple[Any, ...], item: Any, where: str) -> Any:
    if item is None and type(None) in options:
        return None
    rest = [option for option in options if option is not type(None)]
    if len(rest) != 1:
        raise WireError(f"{where} is not of a kind that travels")
    return _convert(rest[0], item, where)


def _convert_scalar(hint: Any, item: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_plain(hint, item)  # type: ignore[arg-type]  # a dataclass type
    try:
        if issubclass(hint, Enum):
            return hint(item)
        if hint is Path and isinstance(item, str):
            return Path(item)
    except ValueError:
        raise WireError(f"{where}: {item!r} is not one of {', '.join(repr(m.value) for m in hint)}") from None
    if hint is float and isinstance(item, int) and not isinstance(item, bool):
        try:
            return float(item)
        except OverflowError:
            raise WireError(f"{where} needs a number that fits, not one of {item.bit_length()} bits") from None
    if not isinstance(item, hint) or (isinstance(item, bool) and hint is not bool):
        raise WireError(f"{where} needs {hint.__name__}, not {item!r}")
    return item
