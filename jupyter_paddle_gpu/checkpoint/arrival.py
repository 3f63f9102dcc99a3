"""Calls a function once a module has been imported, without importing it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Arrived = Callable[[ModuleType], None]


def on_arrival(name: str, arrived: Arrived) -> None:
    """Call ``arrived`` with the module ``name``: now if it is loaded, else right after its import."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        arrived(module)
        return
    sys.meta_path.insert(0, _Finder(name, arrived))


class _Finder(MetaPathFinder):
    """Waits for one import and lets the others find the module."""

    def __init__(self, name: str, arrived: Arrived) -> None:
        self._name = name
        self._arrived = arrived

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)  # not installed yet
            return None
        spec.loader = _Loader(spec.loader, self._arrived)
        return spec


class _Loader(Loader):
    """Runs the module as its own loader does, then tells."""

    def __init__(self, loader: Loader, arrived: Arrived) -> None:
        self._loader = loader
        self._arrived = arrived

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        module.__loader__ = self._loader
        if spec is not None:
            spec.loader = self._loader
        self._loader.exec_module(module)
        self._arrived(module)
