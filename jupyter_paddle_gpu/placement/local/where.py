"""Where the machine's book of leases lies."""

from __future__ import annotations

import os
from pathlib import Path

ENV_BOOK = "JUPYTER_PADDLE_GPU_BOOK"


def default_book() -> Path:
    """Return the book that all programs of this machine use when nobody names another.

    In /tmp on purpose: every account reaches it, and leases need not outlive a boot. Not in TMPDIR: where each account
    has its own, each would lend the same devices.
    """
    return Path(os.environ.get(ENV_BOOK) or "/tmp/jupyter-paddle-gpu")  # noqa: S108  # see shared: it is checked
