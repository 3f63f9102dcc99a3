"""What the agents of this server have seen: the last hour of each session, for all who look."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.telemetry.ring import UNWATCHED_PERIOD_S, WATCHED_PERIOD_S, Ring

NOW = "now"


class Sight:
    """Every method may be called from any thread.

    Nothing is asked of agents before the first viewer; after the last has gone it is asked for less often, so that
    who comes back finds a history.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._epoch = uuid.uuid4().hex[:8]  # numbers of another server mean nothing here
        self._number = 0
        self._rings: dict[str, Ring] = {}
        self._viewers: list[Callable[[], None]] = []
        self.period_s = 0.0

    def saw(self, session: str, reading: Reading) -> None:
        """Keep what a session's agent has seen, and wake who looks."""
        with self._lock:
            self._number += 1
            self._rings.setdefault(session, Ring()).add(self._number, reading)
            viewers = list(self._viewers)
        for wake in viewers:
            wake()

    def forget(self, session: str) -> None:
        """Drop the history of a session that is no more."""
        with self._lock:
            self._rings.pop(session, None)

    def begin(self, wake: Callable[[], None]) -> None:
        """Take a viewer in; ``wake`` is called from any thread when there is something new, and must not block."""
        with self._lock:
            self._viewers.append(wake)
            self.period_s = WATCHED_PERIOD_S

    def end(self, wake: Callable[[], None]) -> None:
        """A viewer that was taken in has gone."""
        with self._lock:
            self._viewers.remove(wake)
            if not self._viewers:
                self.period_s = UNWATCHED_PERIOD_S

    def after(self, mark: str) -> tuple[str, list[tuple[str, Reading]]]:
        """Return the newest mark, and sessions with their readings after ``mark``, in order.

        Everything kept comes after the empty mark, or one of another server; after NOW the newest of each session.
        """
        epoch, _, number = mark.partition("-")
        seen = int(number) if epoch == self._epoch and number.isdecimal() else 0
        with self._lock:
            fresh = [
                (one.number, session, one.reading)
                for session, ring in self._rings.items()
                for one in (ring.after(seen) if mark != NOW else ring.after()[-1:])
            ]
            newest = f"{self._epoch}-{self._number}"
        fresh.sort(key=lambda item: item[0])
        return newest, [(session, reading) for _number, session, reading in fresh]
