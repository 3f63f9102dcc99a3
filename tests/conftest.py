"""Options of the whole test run."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--evictions", default="6", help="how many evictions at random moments the loop's test plays")
    parser.addoption("--moments", default="3", help="how many random moments of each kind of training are resumed")
    parser.addoption("--kills", default="80", help="how many saves are killed at random moments")
    parser.addoption("--fuzz", default="1000", help="how many broken manifests and contents are read")
    parser.addoption("--kubernetes", help="the release of the cluster that the tests start")
    parser.addoption("--seed", default="1", help="draws the random moments")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a shell's background, as would all that the tests start
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(JUPYTER_PADDLE_GPU_LANGUAGE="en", LANGUAGE="en")  # ours and argparse's, on any machine
    settings.register_profile("fuzz", max_examples=int(config.getoption("--fuzz")), deadline=None)
