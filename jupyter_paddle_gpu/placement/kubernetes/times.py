"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import datetime


def epoch_s(text: str) -> float:
    """Return seconds of the epoch for a time in RFC 3339, such as ``2026-12-02T19:46:07Z``."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()  # Python 3.10 knows no Z
