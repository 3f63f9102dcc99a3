"""The IPython extension: magics, hooks, and the line to the agent; loads in milliseconds and imports no paddle."""

from __future__ import annotations

import logging
import sys
from typing import Any

from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.kernel import magics
from jupyter_paddle_gpu.kernel.shadow import shadow_message, without_users_directory
from jupyter_paddle_gpu.language import translated

log = logging.getLogger(__name__)

_hooks: dict[int, Hooks] = {}  # by the shell they are in


def load(ipython: Any, quietly: bool = False) -> None:
    """Load the extension into this shell; repeatable.

    ``quietly``: before the first cell, where nobody would see a message; it comes with the first cell then.
    """
    if id(ipython) in _hooks:
        return
    with without_users_directory():
        hooks = Hooks(ipython)
    _hooks[id(ipython)] = hooks
    hooks.enter(quietly)


def unload(ipython: Any) -> None:
    """Take hooks and magics out of this shell. An agent's notices are still served: the state is worth more."""
    hooks = _hooks.pop(id(ipython), None)
    if hooks is not None:
        hooks.leave()


class Hooks:
    """What the extension hangs into one shell."""

    def __init__(self, ipython: Any) -> None:
        from jupyter_paddle_gpu.kernel.runtime import runtime

        self._shell = ipython
        self._runtime = runtime()
        self._pending: list[str] = []

    def enter(self, quietly: bool) -> None:
        messages = self._protect()
        magics.register(self._shell)
        self._shell.events.register("pre_run_cell", self._before_cell)
        self._shell.events.register("post_run_cell", self._after_cell)
        if hidden := shadow_message():
            messages.append(hidden)
        self._pending = messages
        if not quietly:
            self._say()

    def leave(self) -> None:
        self._shell.events.unregister("pre_run_cell", self._before_cell)
        self._shell.events.unregister("post_run_cell", self._after_cell)
        magics.unregister(self._shell)

    def _protect(self) -> list[str]:
        kernel = getattr(self._shell, "kernel", None)
        try:
            if kernel is None:
                self._runtime.protect_process()
            else:
                self._runtime.protect_kernel(kernel)
                _save_at_shutdown(kernel)
        except PaddleGpuError as error:
            return [str(error)]
        return []

    def _before_cell(self, info: object) -> None:
        self._runtime.watch.look_again()
        self._runtime.protection.open()  # not at the load, and not in the middle of an eviction
        self._say()

    def _after_cell(self, result: object) -> None:
        self._runtime.watch.look_again()
        self._runtime.after_cell()

    def _say(self) -> None:
        for message in self._pending:
            print(translated(message), file=sys.stderr)
        self._pending.clear()


def _save_at_shutdown(kernel: Any) -> None:
    """Save what is unsaved when the kernel is shut down or restarted; its manager waits five seconds for that."""
    from jupyter_paddle_gpu.kernel.runtime import runtime

    shut_down = kernel.do_shutdown

    def do_shutdown(restart: bool) -> Any:
        runtime().save_before_shutdown()
        return shut_down(restart)

    kernel.do_shutdown = do_shutdown
