"""The live networks, optimizers and gradient scalers of this process, in the order in which they were made.

They register themselves: asking the garbage collector for all objects would hand out tuples that another thread is
still building, and break that thread.
"""

from __future__ import annotations

import gc
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

_UNDISTURBED_S = 5.0


class Registry:
    """Holds nothing alive. Built once per process, since classes are patched once."""

    def __init__(self) -> None:
        self._kinds: tuple[type, ...] = ()
        self._alive: tuple[dict[int, weakref.ref[Any]], ...] = ({}, {}, {})

    def attend(self, layer: type, optimizer: type, scaler: type, *, late: bool) -> None:
        """Register what is made from now on; ``late``: and what was made before. Repeatable."""
        if self._kinds:
            return
        self._kinds = (layer, optimizer, scaler)
        if late:
            self._search()
        for kind, alive in zip(self._kinds, self._alive, strict=True):
            kind.__new__ = _registering(kind, alive)  # type: ignore[method-assign]

    def layers(self) -> list[Any]:
        return _live(self._alive[0])

    def optimizers(self) -> list[Any]:
        return _live(self._alive[1])

    def scalers(self) -> list[Any]:
        return _live(self._alive[2])

    def _search(self) -> None:
        """Look through all objects once, while no other thread runs: see above."""
        which: dict[type, int] = {}
        interval_s = sys.getswitchinterval()
        sys.setswitchinterval(_UNDISTURBED_S)
        try:
            time.sleep(2 * interval_s)  # threads that wait now ask for their turn after the old interval
            for thing in gc.get_objects():
                number = which.get(type(thing))
                if number is None:
                    number = which[type(thing)] = self._number(type(thing))
                if number >= 0:
                    _add(self._alive[number], thing)
        finally:
            sys.setswitchinterval(interval_s)

    def _number(self, kind: type) -> int:
        return next((number for number, base in enumerate(self._kinds) if issubclass(kind, base)), -1)


def _registering(kind: type, alive: dict[int, weakref.ref[Any]]) -> Callable[..., Any]:
    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:  # noqa: N807  # it becomes the class's own
        make = super(kind, cls).__new__  # type: ignore[arg-type]  # a class of Layer, Optimizer or AmpScaler
        thing = make(cls) if make is object.__new__ else make(cls, *args, **kwargs)
        _add(alive, thing)
        return thing

    return __new__


def _add(alive: dict[int, weakref.ref[Any]], thing: Any) -> None:
    key = id(thing)
    alive[key] = weakref.ref(thing, lambda _: alive.pop(key, None))


def _live(alive: dict[int, weakref.ref[Any]]) -> list[Any]:
    return [thing for ref in list(alive.values()) if (thing := ref()) is not None]


REGISTRY = Registry()
