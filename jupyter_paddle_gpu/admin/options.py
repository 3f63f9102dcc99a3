"""Options that several subcommands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from jupyter_paddle_gpu.placement.local.where import default_book


def add_book_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--book``: the directory in which this machine's leases are kept."""
    parser.add_argument(
        "--book",
        type=Path,
        default=default_book(),
        metavar="DIR",
        help="the machine's book of leases (default: $JUPYTER_PADDLE_GPU_BOOK or %(default)s)",
    )
