"""Who looks at what this agent sees, and how often each wants to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jupyter_paddle_gpu.agent.peers import Peer
from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.core.wire import Seen

EARLY = 0.1  # a reading that comes this part of a period too early is told all the same


@dataclass
class _Wish:
    period_s: float
    told_s: float = float("-inf")


class Viewers:
    """Owned by the agent, used from its loop. ``watch`` is told the shortest period, 0 where nobody looks."""

    def __init__(self, watch: Callable[[float], None]) -> None:
        self._watch = watch
        self._wishes: dict[Peer, _Wish] = {}

    def asks(self, peer: Peer, period_s: float) -> None:
        """This peer wants to see something every ``period_s`` from now on, the first time at once; 0: no more."""
        if period_s > 0:
            self._wishes[peer] = _Wish(period_s)
        else:
            self._wishes.pop(peer, None)
        self._watch(min((wish.period_s for wish in self._wishes.values()), default=0.0))

    def left(self, peer: Peer) -> None:
        """A peer is gone, whether it looked or not."""
        if peer in self._wishes:
            self.asks(peer, 0.0)

    def tell(self, reading: Reading, now_s: float) -> None:
        """Give a reading to those whose time has come; ``now_s`` is a clock that only grows."""
        for peer, wish in self._wishes.items():
            if now_s - wish.told_s >= (1 - EARLY) * wish.period_s:
                wish.told_s = now_s
                peer.send(Seen(reading))
