"""Files and directories that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path


def make_private(directory: Path) -> None:
    """Create a directory that only its owner may enter. Raises PermissionError if it is somebody else's."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory.stat().st_uid != os.geteuid():
        raise PermissionError(f"{directory} belongs to another user")


def write_private(path: Path, text: str) -> None:
    """Write a file whole or not at all, readable by its owner only."""
    scratch = path.with_suffix(".new")
    scratch.unlink(missing_ok=True)
    scratch.touch(mode=0o600)
    scratch.write_text(text)
    scratch.replace(path)
