"""Writes a snapshot of the training below with the Paddle that is installed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import paddle

from tests.checkpoint.written.training import Digest, resumed, train

if __name__ == "__main__":
    directory = Path(__file__).parent / f"paddle-{paddle.__version__}"
    if directory.exists():
        raise SystemExit(f"{directory} is there already")
    expected: Digest = train(directory)
    assert resumed(directory) == expected, "it does not read what it has written"
    (directory / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    for extra in directory.glob(".*"):
        shutil.rmtree(extra) if extra.is_dir() else extra.unlink()
