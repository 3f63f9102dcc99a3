"""What the user of this process is told without having asked."""

from __future__ import annotations

import os
import sys

from jupyter_paddle_gpu.checkpoint.reports import RestoreReport
from jupyter_paddle_gpu.core.ranks import world_of
from jupyter_paddle_gpu.language import translated


def say(text: str) -> None:
    """Tell the user, in the running cell (where standard error looks like a fault) or on a script's standard error, in
    their language. Of several ranks the first one tells.
    """
    if not world_of(os.environ).main:
        return
    print(f"paddle-gpu: {translated(text)}", file=sys.stdout if "ipykernel" in sys.modules else sys.stderr, flush=True)


def left_open(report: RestoreReport) -> str:
    """Return the lines about what a restore could not do yet, or at all; empty: everything is in place."""
    names = ", ".join(report.unclaimed)
    lines = [f"{names} was restored and waits: guard.keep({report.unclaimed[0]}=…) puts it in place"] if names else []
    if report.tensors is not None:
        lines.append(f"{report.tensors} tensors loaded")
    if report.waits:
        lines.append("the training's state waits for its loop of guard.steps")
    return "\n".join([*lines, *(f"not restored: {part}" for part in report.left_out)])
