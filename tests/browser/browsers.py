"""Finds Chromium. Playwright drives it; its own builds are not needed."""

from __future__ import annotations

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str:
    """Return the path of a Chromium. Where there is none: skip and say how to get one; in CI, fail."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    how = "There is no Chromium for the screens: apt install chromium (Debian), or put Google Chrome on the PATH."
    if os.environ.get("CI"):
        pytest.fail(how)
    pytest.skip(how)
