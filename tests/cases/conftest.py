"""The kernels of ``tests.kernel`` and a directory to run in."""

from __future__ import annotations

from tests.kernel.conftest import agent, evictable, place

__all__ = ["agent", "evictable", "place"]
