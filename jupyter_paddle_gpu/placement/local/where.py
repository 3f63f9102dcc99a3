"""Where the machine's book of leases lies."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

ENV_BOOK = "JUPYTER_PADDLE_GPU_BOOK"


def default_book() -> Path:
    """Return the book that all programs of this machine use when nobody names another.

    In the temporary directory on purpose: every account reaches it, and leases need not outlive a boot.
    """
    return Path(os.environ.get(ENV_BOOK) or Path(tempfile.gettempdir()) / "jupyter-paddle-gpu")
