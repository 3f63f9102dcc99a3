"""Changes of sessions as events of Jupyter's own event system, and as lines of the server's log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from jupyter_events import EventLogger

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.server.view import SessionView

SCHEMA_ID = "https://events.jupyter.org/paddle_gpu/session/v1"
SCHEMA = Path(__file__).with_name("session-v1.yaml")


class SessionEvents:
    """Emits each change once. ``in_loop`` runs a callable on the server's loop: changes come from another thread."""

    def __init__(self, events: EventLogger, log: logging.Logger, in_loop: Callable[[Callable[[], None]], None]) -> None:
        events.register_event_schema(SCHEMA)
        self._events = events
        self._log = log
        self._in_loop = in_loop
        self._last: dict[str, SessionView] = {}

    def observe(self, view: SessionView) -> None:
        """Take a session's state from the sessions' thread."""
        self._in_loop(lambda: self._emit(view))

    def _emit(self, view: SessionView) -> None:
        last = self._last.get(view.id)
        if view == last:
            return
        self._last[view.id] = view
        self._events.emit(schema_id=SCHEMA_ID, data=to_plain(view))
        if last is None or (last.state, last.detail) != (view.state, view.detail):
            level = logging.WARNING if view.exit_code or view.state is State.FAILED else logging.INFO
            text = "; ".join(part for part in (view.detail, view.why) if part)
            self._log.log(level, "%s (%s) is %s%s", view.label, view.id, view.state.value, f": {text}" if text else "")
        if view.state is State.STOPPED:
            del self._last[view.id]
