"""How often one session's agent looks at its devices, as its server has told it."""

from __future__ import annotations

from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.core.wire import Watch
from jupyter_paddle_gpu.server.sight import Sight


class Watching:
    """Of one session, over all its agents. Both methods return what the agent is to be told now (None: nothing).

    An agent that has not answered the last time is told no more: it may be of a version that does not know ``Watch``,
    and such a one closes the connection of who often says what it does not know.
    """

    def __init__(self, session: str, sight: Sight) -> None:
        self._session = session
        self._sight = sight
        self.begin()

    def begin(self) -> None:
        """The session has another agent, which looks at nothing yet."""
        self._told_s = 0.0
        self._answered = True

    def look(self) -> Watch | None:
        """Somebody has begun to look, or nobody looks any more."""
        period_s = self._sight.period_s
        if not self._answered or period_s == self._told_s:
            return None
        self._told_s, self._answered = period_s, False
        return Watch(period_s)

    def saw(self, reading: Reading) -> Watch | None:
        """The agent has seen this."""
        self._sight.saw(self._session, reading)
        self._answered = True
        return self.look()
