"""The first notebook, and copies of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import nbformat

from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.language import language

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"
NAMES = {"en": "01-train-evict-return.ipynb", "zh": "01-train-evict-return.zh-CN.ipynb"}  # by the user's language


def name() -> str:
    """Return the notebook's name in the user's language."""
    return NAMES[language()]


def copy_to(directory: Path) -> Path:
    """Copy the notebook into ``directory`` and return its path. Raises PaddleGpuError outside a clone."""
    source = NOTEBOOKS / name()
    if not source.exists():
        raise PaddleGpuError(f"{source.name} is not here", "Run the demo in a clone of the repository.")
    return Path(shutil.copy(source, directory))


def read(path: Path) -> Any:
    """Return the notebook as nbformat's node."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types


def write(notebook: Any, path: Path) -> None:
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]  # nbformat has no types
