"""The words of the screens, in the languages there are: one file for browser and kernel."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path

from jupyter_paddle_gpu.language import language


@functools.cache
def texts() -> Mapping[str, Mapping[str, str]]:
    """Return the words by language, then by key."""
    found: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("texts.json").read_text("utf-8"))
    return found


def words() -> Mapping[str, str]:
    """Return the words in the user's language."""
    return texts()[language()]
