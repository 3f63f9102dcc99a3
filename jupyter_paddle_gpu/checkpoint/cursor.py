"""Walks over the user's data so that it can stop between two batches, and start there again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, Protocol

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.core.errors import PaddleGpuError


class Cursor(Protocol):
    """One loop's way through its data; the caller opens each epoch, and sets the random state where it resumes."""

    def open(self, epoch: int) -> None:
        """Begin an epoch; what fixes its order is drawn here."""

    def skip(self, batches: int) -> None:
        """Pass over the first batches of the open epoch."""

    @property
    def fetch(self) -> Callable[[], Any]:
        """Returns the next batch of the open epoch when called. Raises StopIteration at its end."""

    def state(self) -> dict[str, Any]:
        """Return what the loader's own objects remember, as plain values."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Give the loader's objects what ``state`` returned."""

    def inexact(self) -> tuple[str, ...]:
        """Return a sentence for each thing that a resume in the middle of an epoch would not repeat."""


class AnyCursor:
    """Lists, ranges, generators, and everything else that can be walked over."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._once = not callable(data) and iter(data) is data
        self._opened = False
        self._batches: Iterator[Any] = iter(())
        self.memory = Memory(data)

    def open(self, epoch: int) -> None:
        if self._once and self._opened:
            raise PaddleGpuError(
                "This loader is an iterator that can be walked over once, and a second epoch begins",
                "Give guard.steps a list, a DataLoader, or the function that makes the iterator.",
            )
        self._opened = True
        self._batches = iter(self._data() if callable(self._data) and not walks(self._data) else self._data)

    def skip(self, batches: int) -> None:
        if isinstance(self._data, Sequence):
            self._batches = itertools.islice(self._data, batches, None)
        else:
            next(itertools.islice(self._batches, batches, batches), None)

    @property
    def fetch(self) -> Callable[[], Any]:
        """The iterator's own next, so that a step pays for no call of ours."""
        return self._batches.__next__

    def state(self) -> dict[str, Any]:
        return self.memory.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.memory.load(state)

    def inexact(self) -> tuple[str, ...]:
        if is_loader(getattr(self._data, "iterable", None)):  # tqdm and its like
            return ("the DataLoader is wrapped and reads ahead: wrap guard.steps instead, tqdm(guard.steps(loader))",)
        return ()


def walks(data: Any) -> bool:
    """Whether it can be iterated over, rather than only called or indexed."""
    return hasattr(type(data), "__iter__")


class Memory:
    """Generators and plain counters that hang on the loader, its dataset and its samplers: they move with the data."""

    _DEPTH = 4

    def __init__(self, *roots: Any, counters: Iterable[Any] = ()) -> None:
        self._generators: dict[str, Any] = {}
        self._counters = list(counters)
        seen: set[int] = set()
        for number, root in enumerate(roots):
            self._search(str(number), root, 0, seen)

    def _search(self, path: str, thing: Any, depth: int, seen: set[int]) -> None:
        if randoms.is_generator(thing):
            self._generators[path] = thing
            return
        if depth >= self._DEPTH or id(thing) in seen or isinstance(thing, (type, ModuleType, FunctionType)):
            return
        seen.add(id(thing))
        parts = vars(thing) if hasattr(thing, "__dict__") else {}
        if isinstance(thing, (list, tuple)) and len(thing) <= 64:
            parts = {str(i): part for i, part in enumerate(thing)}
        for name, part in parts.items():
            if not isinstance(part, (str, bytes, int, float, type(None))):
                self._search(f"{path}.{name}", part, depth + 1, seen)

    def has_generators(self) -> bool:
        return bool(self._generators)

    def state(self) -> dict[str, Any]:
        return {
            "generators": {path: randoms.take_one(generator) for path, generator in self._generators.items()},
            "counters": [_numbers(thing) for thing in self._counters],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        for path, part in state["generators"].items():
            if path in self._generators:
                randoms.give_one(self._generators[path], part)
        for thing, numbers in zip(self._counters, state["counters"], strict=False):
            vars(thing).update(numbers)


def _numbers(thing: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(thing).items() if type(value) in (int, float, bool)}


def is_loader(data: Any) -> bool:
    """Whether this is paddle's DataLoader as paddle walks it."""
    kinds: list[Any] = [kind for kind in type(data).__mro__ if kind.__module__.startswith("paddle.io")]
    return any(kind.__name__ == "DataLoader" and type(data).__iter__ is kind.__iter__ for kind in kinds)
