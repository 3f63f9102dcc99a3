"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    """How grave it is."""

    GOOD = "ok"
    WARNING = "warning"  # it works, and will disappoint
    FAULT = "FAULT"  # it does not work


@dataclass(frozen=True)
class Finding:
    """One sentence about ``what``; ``next_step`` says what to do about a warning or a fault."""

    what: str
    verdict: Verdict
    found: str
    next_step: str = ""
