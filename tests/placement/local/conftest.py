"""A book of two GPUs, and another account that uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_paddle_gpu.placement.local.book import Book

NOBODY = 65534
AS_NOBODY = f"""
import os, pathlib, sys
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import HeldLease, Ticket
os.setgid({NOBODY}); os.setuid({NOBODY}); os.umask(0o077)
directory = pathlib.Path(sys.argv[1])
"""
AsNobody = Callable[[str], str]


@pytest.fixture
def shared_book() -> Iterator[Book]:
    """A book that another account reaches: pytest's own directories are closed to it."""
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        book = Book(Path(parent) / "book")
        (book.directory / "machine.json").write_text(json.dumps({"gpus": ["0", "1"]}))
        yield book


@pytest.fixture
def as_nobody(shared_book: Book) -> AsNobody:
    """Run code as another account, with ``directory`` set to the shared book; return what it prints."""
    if os.geteuid() != 0:
        pytest.skip("needs two accounts: only root can become another user")

    def run(code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY + code, str(shared_book.directory)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout

    return run
