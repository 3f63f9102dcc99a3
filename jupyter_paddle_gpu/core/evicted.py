"""What the cell of an evicted kernel is told: what was saved, and what comes next."""

from __future__ import annotations

from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome, Served
from jupyter_paddle_gpu.language import translated

_NEXT = {
    Cause.SHUTDOWN: "the kernel was ended",
    Cause.RELEASED: "the GPU was given back",
    Cause.SERVER_GONE: "ended because its Jupyter server has gone",
    Cause.CHANGED: "starting again with the GPUs asked for",
}


def sentence(saved: str, notice: EvictionNotice, cpu: bool, comes_back: bool = True) -> str:
    """Return the whole of it, in the user's language; ``saved`` is the first half. ``cpu``: what was held is a
    machine's one CPU slot; ``comes_back``: somebody will start this work again."""
    return translated(f"{saved}, {_what_comes(notice, cpu, comes_back)}")


def what_was_saved(served: Served, newest: str = "") -> str:
    """Return the first half. ``newest`` is a clause on the snapshot that a restore would use, where it is known."""
    if served.outcome is SaveOutcome.SAVED:
        return f"step {served.step} saved" if served.step is not None else served.detail or "state saved"
    if served.outcome is SaveOutcome.NOTHING:
        return "nothing to save"
    return f"nothing saved: {served.detail.rstrip('.')}" + (f" ({newest})" if newest else "")


def _what_comes(notice: EvictionNotice, cpu: bool, comes_back: bool) -> str:
    if notice.cause in _NEXT:
        return _NEXT[notice.cause]
    if not comes_back:
        return "ended by SIGTERM"
    device = "the CPU slot" if cpu else "a GPU"
    return f"waiting for {device}" + ("" if notice.position is None else f", position {notice.position}")
