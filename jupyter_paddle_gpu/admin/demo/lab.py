"""JupyterLab on the first notebook, for a person to try it by hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from jupyter_paddle_gpu.admin.demo import notebook
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.where import default_book

GUIDE = """
JupyterLab opens on {name}. Run its cells. While the training cell runs, take its {noun} away from another terminal:

    {command} run --tier urgent --gpus {count} -- sleep 15

The cell ends with "Evicted", the kernel waits, and comes back when the urgent job is over; run the cells from the top
again. Who holds and who waits:

    {command} ps

End JupyterLab with Ctrl-C.
"""


def open_lab(out: Path) -> NoReturn:
    """Become JupyterLab in ``out/lab``.

    With no process above it Ctrl-C is JupyterLab's alone: it asks, and ends the kernels, which give back what they
    hold.
    """
    root = out / "lab"  # beside what the demo without hands has executed
    root.mkdir(exist_ok=True)
    path = own_copy(root)
    book = Book(default_book())
    command = Path(sys.executable).parent / "jupyter-paddle-gpu"
    print(GUIDE.format(name=path.name, noun=book.noun, count=len(book.devices()), command=command), flush=True)
    as_root = ["--allow-root"] if os.geteuid() == 0 else []  # as in a container
    page = f"--LabApp.default_url=/lab/tree/{path.name}"  # also in the addresses that it prints
    os.chdir(root)
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *as_root, page])  # noqa: S606  # no shell is wanted


def own_copy(root: Path) -> Path:
    """Return the notebook in ``root``, copied there once: what a person has changed stays."""
    path = root / notebook.name()
    return path if path.exists() else notebook.copy_to(root)
