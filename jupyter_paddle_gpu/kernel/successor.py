"""A page shows the screen of a kernel that has ended, and asks the notebook's present kernel for its own."""

from __future__ import annotations

from typing import Any

TARGET = "jupyter-paddle-gpu"


def answer_pages(kernel: Any) -> None:
    """Answer them in this kernel from now on: with the id of its screen, or by closing where there is none."""
    kernel.comm_manager.register_target(TARGET, _asked)


def _asked(comm: Any, message: dict[str, Any]) -> None:
    from jupyter_paddle_gpu.kernel.commands.watch import tail  # the first page that asks pays

    if (screen := tail.screen()) is not None:
        comm.send({"screen": screen.comm_id})
    comm.close()
