"""Options of the whole test run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--evictions", default="6", help="how many evictions at random moments the loop's test plays")
    parser.addoption("--moments", default="3", help="how many random moments of each kind of training are resumed")
    parser.addoption("--seed", default="1", help="draws the random moments")
