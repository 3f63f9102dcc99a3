"""What the user keeps beside the training, by name, and where the values live."""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jupyter_paddle_gpu.checkpoint.keep import Decoder, Encoder, is_tensor, settle
from jupyter_paddle_gpu.checkpoint.stacks import outwards
from jupyter_paddle_gpu.checkpoint.state import RawTensor
from jupyter_paddle_gpu.core.errors import NotKept

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True)
class KeptCopy:
    """Encoded values, the tensors in them, and a sentence for each value that could not be saved."""

    data: dict[str, Any]
    tensors: dict[str, RawTensor]
    left_out: list[str]


NOTHING = KeptCopy({}, {}, [])  # not to be added to


def encode_leniently(name: str, value: dict[str, Any]) -> KeptCopy:
    """Return copies of what can be encoded in a dict."""
    tensors: dict[str, RawTensor] = {}
    return KeptCopy(Encoder("", tensors, lenient=True).encode(value, name), tensors, [])


class Kept(Mapping[str, Any]):
    """The kept values by name. A module's or a cell's variable is followed: what it holds at a snapshot is saved.

    Values of a snapshot whose names are not kept yet wait here, are saved again, and are handed over when they are.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._homes: dict[str, dict[str, Any]] = {}
        self._waiting: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        home = self._homes.get(name)
        return self._values[name] if home is None else home.get(name, self._values[name])

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._values))

    def __len__(self) -> int:
        return len(self._values)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The names whose restored values wait until they are kept."""
        return tuple(self._waiting)

    def keep(self, values: Mapping[str, Any]) -> None:
        """Keep these values. Raises NotKept for one that a snapshot cannot hold or follow; none is kept then.

        A value that a restored snapshot left under this name is put in its place.
        """
        homes = {}
        for name, value in values.items():
            Encoder("kept.", {}, live=True).encode(value, name)
            homes[name] = _home(name, value)
        for name, value in values.items():
            self._values[name] = value
            self._homes.pop(name, None)
            if (home := homes[name]) is not None:
                self._homes[name] = home
            if name in self._waiting:
                self._settle(name, self._waiting.pop(name))

    def forget(self, *names: str) -> None:
        """Keep these no longer. Unknown names are ignored."""
        for name in names:
            for place in (self._values, self._homes, self._waiting):
                place.pop(name, None)

    def encode(self) -> KeptCopy:
        """Return copies of all values as they are now; one that became what no snapshot holds is left out, and said."""
        if not self._values and not self._waiting:  # as in most trainings, at most boundaries
            return NOTHING
        copied = KeptCopy({}, {}, [])
        encoder = Encoder("kept.", copied.tensors)
        for name, value in {**self._waiting, **self}.items():
            try:
                copied.data[name] = encoder.encode(value, name)
            except NotKept as error:
                copied.left_out.append(f"{name} is not saved: {error.fault}")
        return copied

    def nbytes(self) -> int:
        """Return about how many bytes the values take in a snapshot, without copying them."""
        return sum(_nbytes(value) for value in {**self._waiting, **self}.values())

    def restore(self, data: Mapping[str, Any], tensors: Mapping[str, RawTensor]) -> None:
        """Put a snapshot's values where the kept ones live."""
        decoder = Decoder(tensors)
        for name, part in data.items():
            value = decoder.decode(part)
            if name in self._values:
                self._settle(name, value)
            else:
                self._waiting[name] = value

    def unclaimed(self) -> tuple[str, ...]:
        """Return the names of restored values that nobody keeps yet."""
        return tuple(self._waiting)

    def _settle(self, name: str, value: Any) -> None:
        held = settle(self[name], value)
        self._values[name] = held
        if (home := self._homes.get(name)) is not None:
            home[name] = held


def _home(name: str, value: Any) -> dict[str, Any] | None:
    """Return the variables of the module or cell that has this value under this name; None: a value of its own.

    Raises NotKept for a number or text that lives in a function only: what it becomes could not be seen.
    """
    for frame in outwards(sys._getframe(1)):
        if not str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED and frame.f_locals.get(name, frame) is value:
                if not _holds_itself(value):
                    raise NotKept(
                        f"{name} is a {type(value).__name__} in a function, where its later values cannot be seen",
                        f"Keep a dict or list that holds it: guard.keep(progress=progress), progress[{name!r}] = …",
                    )
                return None
            if frame.f_globals.get(name, frame) is value:
                return frame.f_globals
    return None


def _nbytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_tensor(value):
        return int(value.size * value.element_size())
    if isinstance(value, Mapping):
        return sum(_nbytes(part) for part in dict(value).values())
    if not isinstance(value, (list, tuple, deque)):
        return len(str(value))
    parts = list(value)
    if parts and isinstance(parts[0], (int, float, str)):  # a history: one value tells of the others
        return len(parts) * (len(str(parts[0])) + 1)
    return sum(map(_nbytes, parts))


def _holds_itself(value: Any) -> bool:
    """Whether changes happen inside the value, where they are seen."""
    return isinstance(value, (dict, list, deque, np.ndarray)) or is_tensor(value)
