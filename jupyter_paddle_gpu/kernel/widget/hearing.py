"""What browsers say to screens is heard where messages come in: a kernel that runs a cell reads none of them."""

from __future__ import annotations

import logging
from typing import Any

from jupyter_paddle_gpu.kernel.frames import Request
from jupyter_paddle_gpu.kernel.runtime import runtime
from jupyter_paddle_gpu.kernel.widget.watching import Watch

log = logging.getLogger(__name__)


def hear(kernel: Any, watch: Watch) -> None:
    """Hear it in this kernel's shell channel thread from now on. Repeatable.

    Where no switchboard stands there, a word waits for the running cell and comes through ipywidgets.
    """
    if (board := runtime().board) is not None:
        board.aside = lambda request: _hear(request, kernel.session, watch)


def _hear(request: Request, session: Any, watch: Watch) -> bool:
    """Whether this message was for a screen: then it is dealt with. The rest is the kernel's, faulty ones too."""
    if request.header.get("msg_type") != "comm_msg":
        return False
    try:
        _, message = request.opened(session)
        content = message["content"]
        data = content["data"]
        screen = watch.screen(content["comm_id"])
        if screen is None or data.get("method") != "custom":
            return False
        screen.heard(data["content"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        log.debug("Not a message for a screen: %s", error)
        return False
    return True
