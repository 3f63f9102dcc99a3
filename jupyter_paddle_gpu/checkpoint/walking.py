"""Chooses how guard.steps walks over what it was given."""

from __future__ import annotations

from typing import Any

from jupyter_paddle_gpu.checkpoint.cursor import AnyCursor, Cursor, is_loader, walks
from jupyter_paddle_gpu.core.errors import PaddleGpuError


def cursor_of(data: Any) -> Cursor:
    """Return the cursor for this loader. Raises PaddleGpuError for what cannot be walked over."""
    if is_loader(data):
        from jupyter_paddle_gpu.checkpoint.capture.loader import loader_cursor

        if (found := loader_cursor(data)) is not None:
            return found
    if not walks(data) and not callable(data) and not hasattr(data, "__getitem__"):
        raise PaddleGpuError(
            f"guard.steps cannot walk over data of type {type(data).__name__}",
            "Give it a DataLoader, a list or an iterable.",
        )
    return AnyCursor(data)
