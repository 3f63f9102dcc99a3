"""The words of the screens, in the languages there are: one file for browser and kernel."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path

ENGLISH = "en"


@functools.cache
def texts() -> Mapping[str, Mapping[str, str]]:
    """Return the words by language, then by key."""
    found: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("texts.json").read_text("utf-8"))
    return found


def words(environ: Mapping[str, str] = os.environ) -> Mapping[str, str]:
    """Return the words in the language that this process was started in; English for one that we do not speak."""
    spoken = next((environ[name] for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return texts().get(spoken[:2].lower(), texts()[ENGLISH])
