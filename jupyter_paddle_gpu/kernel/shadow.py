"""Files beside the notebook or script that hide Python's or a library's own modules of the same name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# Libraries that Paddle or we import; `dl` is no module of Python's any more, but setuptools still tries to import it.
_LIBRARIES = frozenset({"dl", "numpy", "paddle", "zmq", "google", "networkx", "PIL", "httpx", "safetensors"})
_HARMLESS = frozenset({"test", "this", "antigravity", "turtle", "idlelib", "turtledemo", "lib2to3", "__future__"})


def users_directory() -> Path | None:
    """Return where the user's own modules lie: beside the script, else the working directory; None: it is gone."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        if isinstance(script, str) and "IPython" not in sys.modules:
            return Path(script).absolute().parent
        return Path.cwd()
    except FileNotFoundError:
        return None


def shadowing_files(directory: Path, search_path: Sequence[str]) -> list[Path]:
    """Return the modules in ``directory`` that whoever imports one of those names gets instead, by name.

    ``search_path`` decides: IPython puts the working directory behind Python's own library, Python puts it before.
    """
    places = [index for index, entry in enumerate(search_path) if _is(entry, directory)]
    if not places:
        return []
    own = str(Path(os.__file__).parent)
    hides_python = own not in search_path or places[0] < search_path.index(own)
    names = (_LIBRARIES | sys.stdlib_module_names if hides_python else _LIBRARIES) - _HARMLESS
    try:
        with os.scandir(directory) as entries:
            found = [Path(entry.path) for entry in entries if _module_name(entry) in names]
    except OSError:
        return []  # a directory that cannot be read hides nothing
    return sorted(found)


def shadow_message() -> str | None:
    """Return what to tell the user about such files; None where there are none."""
    directory = users_directory()
    files = shadowing_files(directory, sys.path) if directory is not None else []
    if not files:
        return None
    lines = [
        f"{path.name} in {path.parent} hides the module {path.stem!r}: a library that imports it gets your file instead"
        for path in files
    ]
    return "\n".join([*lines, f"Rename {'it' if len(files) == 1 else 'them'}; Paddle or this extension may fail else."])


@contextmanager
def without_users_directory() -> Iterator[None]:
    """Import our own modules as if there were no files beside the notebook or script."""
    before, directory = list(sys.path), users_directory()
    if directory is not None:
        sys.path[:] = [entry for entry in before if not _is(entry, directory)]
    try:
        yield
    finally:
        sys.path[:] = before


def _is(entry: str, directory: Path) -> bool:
    return entry in ("", ".", str(directory))


def _module_name(entry: os.DirEntry[str]) -> str:
    if entry.name.endswith(".py"):
        return entry.name.removesuffix(".py")
    if entry.is_dir() and Path(entry.path, "__init__.py").exists():
        return entry.name
    return ""
