"""Who else is there: devices, claims and tiers, as the session's server sees them."""

from __future__ import annotations

from contextlib import suppress

from jupyter_paddle_gpu.core.codec import from_plain
from jupyter_paddle_gpu.core.errors import AgentUnreachable
from jupyter_paddle_gpu.core.tiers import Ladder
from jupyter_paddle_gpu.kernel.runtime import runtime
from jupyter_paddle_gpu.placement.base import Overview
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.where import default_book


def overview() -> Overview:
    """Return who holds what. Without a session, or a server that answers, it is this machine's book that says so; in a
    kernel somewhere else, which has none, nothing is known then. Raises PlacementError."""
    if runtime().link is not None:
        with suppress(AgentUnreachable):
            return from_plain(Overview, runtime().call("overview"))
        if not default_book().exists():
            return Overview()
    return Book(default_book()).overview()


def ladder() -> Ladder:
    """Return the tiers of this machine or cluster. Raises PlacementError."""
    return Ladder(overview().tiers)
