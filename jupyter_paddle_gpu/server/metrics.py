"""What an administrator watches, in jupyter_server's own ``/metrics``: sessions, waits, evictions, returns."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import REGISTRY, CollectorRegistry

from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.server.view import SessionView

_WAITS_S = (1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
_SAVES_S = (0.1, 0.3, 1, 3, 10, 30, 60, 120, 300)
_WITHOUT_PLACE = (State.REQUESTED, State.WAITING)


class SessionMetrics:
    """Counts the changes of sessions; once for a registry. ``clock`` gives seconds that only grow."""

    def __init__(self, registry: CollectorRegistry = REGISTRY, clock: Callable[[], float] = time.monotonic) -> None:
        def named(name: str) -> str:
            return f"paddle_gpu_{name}"

        tier = ("tier",)
        self._sessions = Gauge(named("sessions"), "Sessions of this server.", ("state", *tier), registry=registry)
        self._evictions = Counter(named("evictions"), "Notices to give a place up.", tier, registry=registry)
        self._returns = Counter(named("returns"), "Kernels back after an eviction.", tier, registry=registry)
        self._restores = Counter(named("restores"), "Snapshots restored.", tier, registry=registry)
        self._lost = Counter(named("lost_steps"), "Steps made again after an interruption.", tier, registry=registry)
        self._given_back = Counter(
            named("given_back_gpu_seconds"), "Seconds of GPUs that evicted sessions left to others.", tier,
            registry=registry,
        )  # fmt: skip
        self._save_s = Histogram(
            named("save_seconds"), "From a wish for a snapshot to the snapshot.", ("cause",), registry=registry,
            buckets=_SAVES_S,
        )  # fmt: skip
        self._save_bytes = Counter(named("save_bytes"), "Bytes of snapshots made.", ("cause",), registry=registry)
        self._waits = Histogram(
            named("wait_seconds"), "From the wish for a place to the place.", tier, registry=registry, buckets=_WAITS_S
        )
        self._clock = clock
        self._last: dict[str, SessionView] = {}
        self._waiting_since_s: dict[str, float] = {}
        self._given_back_since_s: dict[str, float] = {}

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
        self._count_given_back(view)
        if last is not None:
            self._count_training(last, view)

    def _count_training(self, last: SessionView, view: SessionView) -> None:
        if view.saved is not None and view.saved != last.saved:
            cause = view.saved.cause.value
            self._save_s.labels(cause).observe(view.saved.seconds)
            self._save_bytes.labels(cause).inc(view.saved.nbytes)
        if view.restored is not None and view.restored != last.restored:
            self._restores.labels(view.request.tier).inc()
            self._lost.labels(view.request.tier).inc(view.restored.lost_steps or 0)

    def _count_given_back(self, view: SessionView) -> None:
        """A waiting session is told of every second: so the counter grows while its GPUs are lent to others."""
        now_s = self._clock()
        if (since_s := self._given_back_since_s.pop(view.id, None)) is not None:
            self._given_back.labels(view.request.tier).inc(view.request.gpus * (now_s - since_s))
        if view.state is State.WAITING:
            self._given_back_since_s[view.id] = now_s

    def _count(self, view: SessionView, before: State | None) -> None:
        tier = view.request.tier
        if view.state is State.EVICTING:
            self._evictions.labels(tier).inc()
        if (before, view.state) == (State.RESTORING, State.RUNNING):
            self._returns.labels(tier).inc()
        if view.state in _WITHOUT_PLACE:
            self._waiting_since_s.setdefault(view.id, self._clock())
        elif (since_s := self._waiting_since_s.pop(view.id, None)) is not None and view.state in (
            State.STARTING,
            State.RESTORING,
        ):
            self._waits.labels(tier).observe(self._clock() - since_s)
