"""What we say, in the language of whoever reads it.

The code speaks English, and so do our processes to each other; a sentence is its own name, and what it says of this
case are its values. Where it is shown (a magic's output, an error's text, an answer or an event of the server),
``translated`` finds the sentence in a catalogue, takes the values out, and says it in the reader's language. What a
catalogue lacks is shown in English.

A catalogue maps an English sentence to its translation. In both, {1} stands for any value, which is translated itself.
In the English one {#1} is a number with its unit, {=1} one of our own words, such as the name of a state.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

ENGLISH = "en"
ENV_LANGUAGE = "JUPYTER_PADDLE_GPU_LANGUAGE"  # what a server tells its kernels: its settings may not be where they are
_POSIX = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_CATALOGUES = {"zh": Path(__file__).with_name("locale") / "zh_CN" / "sentences.json"}
_LAB = Path("@jupyterlab", "translation-extension", "plugin.jupyterlab-settings")
_LOCALE = re.compile(r'^(?!\s*//)[^\n]*"locale"\s*:\s*"(\w+)', re.MULTILINE)

_PLACE = re.compile(r"\{([#=]?)(\d)\}")
_JOINTS = (  # between lines, sentences, clauses and counted things; and what stands there in Chinese
    (re.compile("\n"), "\n"),
    (re.compile(r"(?<=[.?!]) +"), " "),
    (re.compile("; "), "；"),
    (re.compile(r", (?=\d+ × )"), "，"),
)
_MARGINS = re.compile(r"(\s*)(.*?)(\.?)(\s*)", re.DOTALL)
_LONGEST, _DEEPEST = 8000, 10
_QUANTITY = r"\d[\d.,]*(?: ?[A-Za-z%]{1,3}\b)?(?: \d+ [a-z]{1,3}\b)?"


def language(environ: Mapping[str, str] = os.environ) -> str:
    """Return the language of this process's user, one that there is a catalogue of, else English: what is set in
    JupyterLab, else what the server has said, else the locale that the process was started in."""
    asked = [_set_in_lab(environ), *(environ.get(name, "") for name in (ENV_LANGUAGE, *_POSIX))]
    first = next((text for text in asked if text), "")
    return first[:2].lower() if first[:2].lower() in _CATALOGUES else ENGLISH


def translated(text: str) -> str:
    """Return a text of ours in the user's language, as far as its sentences are known there."""
    asked = language()
    return text if asked == ENGLISH else _catalogue(asked).translated(text)


def spoken(value: Any) -> Any:
    """Return JSON values with each text in the user's language; not for what holds names of the user's own."""
    asked = language()
    return value if asked == ENGLISH else _each(value, _catalogue(asked).translated)


def word(text: str) -> str:
    """Return one word of ours in the user's language. It is for what can be nothing of the user's own."""
    asked = language()
    return text if asked == ENGLISH else _catalogue(asked).words.get(text, text)


class Catalogue:
    """One language. ``words`` are its sentences without places."""

    def __init__(self, sentences: Mapping[str, str]) -> None:
        without = {english: text for english, text in sentences.items() if not _PLACE.search(english)}
        self.words = without
        self._exact = {_bare(english): _bare(text) for english, text in without.items() if " " in english}
        patterns = [_Pattern(_bare(english), _bare(text), self) for english, text in sentences.items()]
        self._patterns = sorted((one for one in patterns if one.places), key=lambda one: -one.weight)

    @functools.lru_cache(maxsize=512)  # noqa: B019  # a catalogue lives as long as the process
    def translated(self, text: str, depth: int = 0) -> str:
        """Return it by its lines, sentences or clauses where all are known, else as one, else what is known of them.

        What is longer or deeper (``depth``: in how many others it stands) than any of ours is somebody else's, and
        stays.
        """
        if len(text) > _LONGEST or depth > _DEEPEST:
            return text
        parted = [
            (parts, [self.translated(part, depth + 1) for part in parts], between)
            for joint, between in _JOINTS
            if len(parts := joint.split(text)) > 1
        ]
        for parts, said, between in parted:
            if not set(parts) & set(said):
                return _joined(said, between)
        before, body, stop, after = _MARGINS.fullmatch(text).groups()  # type: ignore[union-attr]  # everything matches
        if (known := self._known(body, depth + 1)) is not None:
            return f"{before}{known}{'。' if stop else ''}{after}"
        return next((_joined(said, between) for parts, said, between in parted if parts != said), text)

    def _known(self, body: str, depth: int) -> str | None:
        if body in self._exact:
            return self._exact[body]
        said = (pattern.say(body, depth) for pattern in self._patterns)
        return next((text for text in said if text is not None), None)


class _Pattern:
    """A sentence with places. ``weight``: how much of it is fixed."""

    def __init__(self, english: str, text: str, catalogue: Catalogue) -> None:
        self._text, self._catalogue = text, catalogue
        parts = _PLACE.split(english)  # fixed, kind, number, fixed, …
        self._fixed = parts[::3]
        self.places = dict(zip(parts[2::3], parts[1::3], strict=True))  # number → kind
        self.weight = sum(map(len, self._fixed))
        self._shape = self._shape_of(catalogue.words) if any(self.places.values()) else None

    def _shape_of(self, words: Collection[str]) -> re.Pattern[str]:
        kinds = {"": "(.*?)", "#": f"({_QUANTITY})", "=": f"({'|'.join(map(re.escape, words))})"}
        first, *others = map(re.escape, self._fixed)
        rest = (kinds[kind] + following for kind, following in zip(self.places.values(), others, strict=True))
        return re.compile(first + "".join(rest), re.DOTALL)

    def say(self, text: str, depth: int) -> str | None:
        """Return the translation of ``text``, which stands in so many others; None where it is another sentence."""
        first, last = self._fixed[0], self._fixed[-1]
        if not text.startswith(first) or not text.endswith(last) or len(text) < self.weight:
            return None
        if self._shape is None:
            found = self._between(text)
        else:
            whole = self._shape.fullmatch(text)
            found = None if whole is None else list(whole.groups())
        if found is None:
            return None
        values = dict(zip(self.places, found, strict=True))
        return _PLACE.sub(lambda place: self._value(place[2], values[place[2]], depth), self._text)

    def _between(self, text: str) -> list[str] | None:
        """Return what stands between the fixed parts, each at its first place: however long a text, it is read once."""
        at, end = len(self._fixed[0]), len(text) - len(self._fixed[-1])
        values = []
        for part in self._fixed[1:-1]:
            if (found := text.find(part, at, end)) < 0:
                return None
            values.append(text[at:found])
            at = found + len(part)
        return [*values, text[at:end]]

    def _value(self, number: str, value: str, depth: int) -> str:
        words = self._catalogue.words
        return words[value] if self.places[number] == "=" else self._catalogue.translated(value, depth).strip()


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _each(part, change) for name, part in value.items()}
    return [_each(part, change) for part in value] if isinstance(value, (list, tuple)) else value


def _joined(parts: list[str], between: str) -> str:
    return re.sub("(?<=[。？！]) ", "", between.join(parts))


def _bare(sentence: str) -> str:
    return sentence.removesuffix(".").removesuffix("。")


@functools.cache
def _catalogue(asked: str) -> Catalogue:
    return Catalogue(json.loads(_CATALOGUES[asked].read_text("utf-8")))


def _set_in_lab(environ: Mapping[str, str]) -> str:
    """Return the language that the user has chosen in JupyterLab; empty where there is no choice or no JupyterLab."""
    from jupyter_core.paths import jupyter_config_dir

    directory = environ.get("JUPYTERLAB_SETTINGS_DIR") or Path(jupyter_config_dir(), "lab", "user-settings")
    path = Path(directory) / _LAB
    try:
        chosen = _read_choice(path, path.stat().st_mtime_ns)
    except OSError:
        return ""
    return "" if chosen == "default" else chosen


@functools.lru_cache(maxsize=8)
def _read_choice(path: Path, changed_ns: int) -> str:
    found = _LOCALE.search(path.read_text("utf-8", errors="replace"))
    return found[1] if found else ""
