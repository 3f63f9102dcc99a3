"""What an administrator watches, in jupyter_server's own ``/metrics``: sessions, waits, evictions, returns."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import REGISTRY, CollectorRegistry

from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.server.view import SessionView

_WAITS_S = (1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
_WITHOUT_PLACE = (State.REQUESTED, State.WAITING)


class SessionMetrics:
    """Counts the changes of sessions; once for a registry. ``clock`` gives seconds that only grow."""

    def __init__(self, registry: CollectorRegistry = REGISTRY, clock: Callable[[], float] = time.monotonic) -> None:
        def named(name: str) -> str:
            return f"paddle_gpu_{name}"

        tier = ("tier",)
        self._sessions = Gauge(named("sessions"), "Sessions of this server.", ("state", *tier), registry=registry)
        self._evictions = Counter(named("evictions"), "Notices to give a place up.", tier, registry=registry)
        self._restores = Counter(named("restores"), "Kernels back after an eviction.", tier, registry=registry)
        self._waits = Histogram(
            named("wait_seconds"), "From the wish for a place to the place.", tier, registry=registry, buckets=_WAITS_S
        )
        self._clock = clock
        self._last: dict[str, SessionView] = {}
        self._waiting_since_s: dict[str, float] = {}

    def observe(self, view: SessionView) -> None:
        """Take a session's state, always from the same thread."""
        last = self._last.get(view.id)
        if last is not None:
            self._sessions.labels(last.state.value, last.request.tier).dec()
        if view.state is State.STOPPED:
            self._last.pop(view.id, None)
        else:
            self._last[view.id] = view
            self._sessions.labels(view.state.value, view.request.tier).inc()
        if last is None or last.state is not view.state:
            self._count(view, last.state if last is not None else None)

    def _count(self, view: SessionView, before: State | None) -> None:
        tier = view.request.tier
        if view.state is State.EVICTING:
            self._evictions.labels(tier).inc()
        if (before, view.state) == (State.RESTORING, State.RUNNING):
            self._restores.labels(tier).inc()
        if view.state in _WITHOUT_PLACE:
            self._waiting_since_s.setdefault(view.id, self._clock())
        elif (since_s := self._waiting_since_s.pop(view.id, None)) is not None and view.state in (
            State.STARTING,
            State.RESTORING,
        ):
            self._waits.labels(tier).observe(self._clock() - since_s)
