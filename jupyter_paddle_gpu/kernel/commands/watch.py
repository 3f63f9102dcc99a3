"""The live view, where there is a notebook and anywidget: ``watch``, and the end of what other commands show."""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING

from IPython.display import DisplayHandle, display

from jupyter_paddle_gpu.kernel import client
from jupyter_paddle_gpu.kernel.commands.command import Command, Namespace
from jupyter_paddle_gpu.kernel.runtime import runtime
from jupyter_paddle_gpu.kernel.successor import MODEL
from jupyter_paddle_gpu.kernel.widget.picture import picture, still
from jupyter_paddle_gpu.kernel.widget.watching import Watch
from jupyter_paddle_gpu.kernel.widget.watching import watch as of_this_kernel

if TYPE_CHECKING:
    from jupyter_paddle_gpu.kernel.widget.screen import WatchScreen

log = logging.getLogger(__name__)


def live(model_id: str | None = None) -> WatchScreen | None:
    """Return a new screen, which pages know by ``model_id`` (None: any); None where it cannot be: no notebook, or no
    anywidget."""
    if (kernel := client.kernel()) is None:
        return None
    try:
        from jupyter_paddle_gpu.kernel.widget.screen import WatchScreen
    except ImportError as error:
        log.debug("There is no live view: %s", error)
        return None
    watch = of_this_kernel()
    screen = WatchScreen(kernel, watch, model_id)
    watch.add(screen)
    return screen


def watch(args: argparse.Namespace, variables: Namespace) -> object:
    return live() or still(of_this_kernel().glance())


class Tail:
    """The live view that ends the output of some commands: one per kernel, in the cell that had such a command last."""

    def __init__(self) -> None:
        self._screen: WatchScreen | None = None
        self._handle: DisplayHandle | None = None

    def show(self, moves: bool = False) -> None:
        """Show it in the running cell; where it was before, a picture stays. What goes wrong with it is logged.

        Nothing is shown where nobody looks, where somebody already sees a screen that they asked for, or in a kernel
        without a session; ``moves``: its notebook moves to one that has, whose screen the page will show instead.
        """
        watch = of_this_kernel()
        if not (moves or runtime().link) or not client.in_page() or watch.seen(besides=self._screen):
            return
        try:
            self._show(watch)
        except Exception:
            log.exception("The live view could not be shown")

    def _show(self, watch: Watch) -> None:
        watch.look(anew=True)
        outlook = watch.glance()
        if (screen := self.screen()) is None:
            return
        if self._handle is not None:
            self._handle.update(picture(outlook))
        self._handle = display(screen, display_id=True)

    def screen(self) -> WatchScreen | None:
        """Return its screen; None where there can be none."""
        if self._screen is None or not self._screen.comm_id:  # closed, with all widgets perhaps
            self._screen = live(MODEL)
        return self._screen


tail = Tail()

COMMANDS = (Command("watch", "see state, GPU, memory and the last snapshot live", watch),)
