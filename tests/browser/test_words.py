"""The sidebar's words in Chinese: none is missing, none is left over."""

from __future__ import annotations

import json
import re

from tests.browser.conftest import ROOT

CATALOGUE = ROOT / "jupyter_paddle_gpu" / "locale" / "zh_CN" / "LC_MESSAGES" / "jupyter_paddle_gpu.json"
CALL = re.compile(r"""trans\.(?:__|_n)\(\s*'((?:[^'\\]|\\.)*)'""")


def spoken() -> set[str]:
    """Return what the sources and the schema say."""
    sources = [path.read_text() for path in (ROOT / "labextension" / "src").rglob("*.ts*")]
    words = {text for source in sources for text in CALL.findall(source)}
    schema = json.loads((ROOT / "labextension" / "schema" / "panel.json").read_text())
    words |= {f"schema\x04{schema[name]}" for name in ("title", "description")}
    for described in schema["properties"].values():
        words |= {f"settings\x04{described[name]}" for name in ("title", "description")}
    return words


def test_every_word_has_a_translation_with_the_same_places() -> None:
    catalogue: dict[str, list[str]] = json.loads(CATALOGUE.read_text())
    del catalogue[""]  # its header
    assert set(catalogue) == spoken()
    for words, (translated,) in catalogue.items():
        assert set(re.findall("%[0-9]", words)) == set(re.findall("%[0-9]", translated)), words
