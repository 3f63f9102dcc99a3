"""What Paddle 2.6 and 3.x have written is read by whichever runs here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.checkpoint.harness import call

WRITTEN = sorted((Path(__file__).parent / "written").glob("paddle-*"))


def test_both_versions_are_there() -> None:
    assert {path.name.split("-")[1].split(".")[0] for path in WRITTEN} == {"2", "3"}


@pytest.mark.parametrize("written", WRITTEN, ids=lambda path: path.name)
def test_an_old_snapshot_comes_back_in_every_bit_and_trains_on(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path / "copy")
    found = call("tests.checkpoint.written.training", "resumed", tmp_path / "copy")
    expected = json.loads((written / "expected.json").read_text())
    losses, expected_losses = found.pop("losses"), expected.pop("losses")
    assert found == expected
    assert losses == pytest.approx(expected_losses, rel=1e-4)  # each Paddle rounds in its own way
