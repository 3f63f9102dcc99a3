"""A page may show the screen of a kernel that has ended: it asks the notebook's present kernel for its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

TARGET = "jupyter-paddle-gpu"  # on which a page asks that has shown a kernel before
CONTROL = "jupyter.widget.control"  # on which a page that was loaded anew asks for all widgets; see ipywidgets
MODEL = "jupyter-paddle-gpu-live"  # by which pages, and notebooks that were saved, know the screen of any kernel


def answer_pages(kernel: Any) -> None:
    """Answer them in this kernel from now on, or close where there is no screen."""
    kernel.comm_manager.register_target(TARGET, _asked)
    kernel.comm_manager.register_target(CONTROL, _asked_for_all)  # until ipywidgets is imported, which does the same


def _asked(comm: Any, message: dict[str, Any]) -> None:
    from jupyter_paddle_gpu.kernel.commands.watch import tail  # the first page that asks pays

    if (screen := tail.screen()) is not None:
        comm.send({"screen": screen.comm_id})
    comm.close()


def _asked_for_all(comm: Any, message: dict[str, Any]) -> None:
    """Make the screen that the notebook shows, before the page misses it."""
    from jupyter_paddle_gpu.kernel.commands.watch import tail

    if not _notebook_shows_it() or tail.screen() is None:
        comm.close()
        return
    from ipywidgets import Widget

    Widget.handle_control_comm_opened(comm, message)


def _notebook_shows_it() -> bool:
    try:
        return MODEL.encode() in Path(os.environ["JPY_SESSION_NAME"]).read_bytes()
    except (KeyError, OSError):
        return False
