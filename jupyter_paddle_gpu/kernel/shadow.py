"""Files beside the notebook that hide Python's or a library's own modules of the same name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Libraries that Paddle or we import; `dl` is no module of Python's any more, but setuptools still tries to import it.
_LIBRARIES = frozenset({"dl", "numpy", "paddle", "wrapt", "zmq", "google", "networkx", "PIL", "httpx", "safetensors"})
_HARMLESS = frozenset({"test", "this", "antigravity", "turtle", "idlelib", "turtledemo", "lib2to3", "__future__"})


def shadowing_files(directory: Path) -> list[Path]:
    """Return the modules in ``directory`` that whoever imports one of those names gets instead, by name."""
    names = (sys.stdlib_module_names | _LIBRARIES) - _HARMLESS
    try:
        with os.scandir(directory) as entries:
            found = [Path(entry.path) for entry in entries if _module_name(entry) in names]
    except OSError:
        return []  # a directory that cannot be read hides nothing
    return sorted(found)


def shadow_message(files: list[Path]) -> str:
    """Return what to tell the user about these files."""
    lines = [
        f"{path.name} in {path.parent} hides the module {path.stem!r}: a library that imports it gets your file instead"
        for path in files
    ]
    return "\n".join([*lines, f"Rename {'it' if len(files) == 1 else 'them'}; Paddle or this extension may fail else."])


@contextmanager
def without_working_directory() -> Iterator[None]:
    """Import our own modules as if there were no files beside the notebook."""
    before = list(sys.path)
    here = str(Path.cwd()) if _cwd_exists() else ""
    sys.path[:] = [entry for entry in before if entry not in ("", ".", here)] or before
    try:
        yield
    finally:
        sys.path[:] = before


def _cwd_exists() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _module_name(entry: os.DirEntry[str]) -> str:
    if entry.name.endswith(".py"):
        return entry.name.removesuffix(".py")
    if entry.is_dir() and Path(entry.path, "__init__.py").exists():
        return entry.name
    return ""
