"""What a page has to load for the sidebar."""

from __future__ import annotations

import gzip

from tests.browser.conftest import ROOT


def test_the_sidebar_is_at_most_40_kb_gzipped() -> None:
    scripts = list((ROOT / "jupyter_paddle_gpu" / "labextension" / "static").glob("*.js"))
    assert scripts
    assert sum(len(gzip.compress(script.read_bytes())) for script in scripts) <= 40_000
