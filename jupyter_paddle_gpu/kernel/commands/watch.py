"""watch: the live view, where there is a notebook and anywidget; else the same facts, standing still."""

from __future__ import annotations

import argparse
import logging

from jupyter_paddle_gpu.kernel.commands.command import Command, Namespace
from jupyter_paddle_gpu.kernel.widget.picture import still
from jupyter_paddle_gpu.kernel.widget.watching import watch as of_this_kernel

log = logging.getLogger(__name__)


def live() -> object | None:
    """Return a new screen; None where it cannot be: no notebook, or no anywidget."""
    from ipykernel.kernelbase import Kernel

    if not Kernel.initialized():
        return None
    try:
        from jupyter_paddle_gpu.kernel.widget.screen import WatchScreen
    except ImportError as error:
        log.debug("There is no live view: %s", error)
        return None
    watch = of_this_kernel()
    screen = WatchScreen(Kernel.instance(), watch)
    watch.add(screen)
    return screen


def watch(args: argparse.Namespace, variables: Namespace) -> object:
    return live() or still(of_this_kernel().glance())


COMMANDS = (Command("watch", "see state, GPU, memory and the last snapshot live", watch),)
