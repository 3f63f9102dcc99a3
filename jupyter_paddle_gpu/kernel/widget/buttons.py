"""What the buttons of a screen do: each press in a thread of its own, for a cell may run meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from jupyter_paddle_gpu.checkpoint.words import what
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.kernel.runtime import runtime

log = logging.getLogger(__name__)

Say = Callable[[Mapping[str, Any]], None]


def _save() -> Mapping[str, Any]:
    snapshot = runtime().protection.save(Cause.MANUAL)
    return {"step": snapshot.step, "nbytes": snapshot.nbytes, "seconds": snapshot.seconds, "text": what(snapshot)}


def _release() -> Mapping[str, Any]:
    runtime().call("release")
    return {}


BUTTONS: Mapping[str, Callable[[], Mapping[str, Any]]] = {"save": _save, "release": _release}


def press(button: str, say: Say) -> None:
    """Do what a button is for and return at once.

    ``say`` is called, from any thread, with ``phase`` begun, then done (and what was done) or failed (and ``text``).
    """
    threading.Thread(target=_do, args=(button, say), name=f"paddle-gpu-{button}", daemon=True).start()


def _do(button: str, say: Say) -> None:
    try:
        say({"button": button, "phase": "begun"})
        say({"button": button, "phase": "done", **BUTTONS[button]()})
    except PaddleGpuError as error:
        say({"button": button, "phase": "failed", "text": str(error)})
    except Exception as error:
        log.exception("The button %s failed", button)
        say({"button": button, "phase": "failed", "text": f"{type(error).__name__}: {error}"})
