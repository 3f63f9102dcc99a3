"""What of a text reads as English, on a page that is to be Chinese."""

from __future__ import annotations

import re

# What is written as it is in any language: commands, options, paths, what stands in quotes of code.
_LITERAL = re.compile(
    r"%paddle_gpu( [a-zA-Z-]+| \d+\w*)*|jupyter [\w-]+( [\w=.-]+)*|/[\w./ -]+|`[^`]*`|--?\w[\w-]*( [A-Z]+)?"
)
_THREE_WORDS = re.compile(r"(?:\b[A-Za-z][a-z']+ ){2,}[a-z]+\b")


def english(text: str) -> list[str]:
    """Return each run of three words and more."""
    return [found[0] for found in _THREE_WORDS.finditer(_LITERAL.sub("", text))]
