"""Who runs the present cell: a page, a console, or a tool that executes a notebook from its first cell to its last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def kernel() -> Any:
    """Return this process's ipykernel; None in a terminal or a script."""
    from ipykernel.kernelbase import Kernel

    return Kernel.instance() if Kernel.initialized() else None


def in_page() -> bool:
    """Whether it is a page: only those name their cells."""
    return "cellId" in _request().get("metadata", {})


def by_tool() -> bool:
    """Whether it is a tool: such a client says that there is nobody to ask, with ``input()`` say."""
    return _request().get("content", {}).get("allow_stdin") is False


def _request() -> Mapping[str, Any]:
    request: Mapping[str, Any] = {} if (found := kernel()) is None else found.get_parent("shell")
    return request
