"""One thread that tells all screens of this kernel how it stands, while somebody looks; nothing runs otherwise."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from typing import Any, Protocol

from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.snapshot import Served
from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.kernel.runtime import Runtime, runtime
from jupyter_paddle_gpu.kernel.widget.outlook import Outlook, Standing, last, leaving, standing, told

log = logging.getLogger(__name__)

GLANCE_S = 0.3  # for a first reading
LOOKING_S = 1.0  # between two posts to a screen that somebody sees
PERHAPS_S = 5.0  # the same where nobody has said so yet
STANDING_S = 5.0  # between two questions about what changes slowly


class Screen(Protocol):
    """What is told. ``period_s`` is PERHAPS_S until its browsers say whether they show it, then LOOKING_S or 0: nobody
    looks. ``post`` is called from any thread and must not block; one that raises is not told again."""

    period_s: float

    @property
    def comm_id(self) -> str: ...
    def post(self, outlook: dict[str, Any]) -> None: ...
    def heard(self, content: dict[str, Any]) -> None: ...


class Watch:
    """One per kernel, made by ``watch()``."""

    def __init__(self, of: Runtime) -> None:
        self._runtime = of
        self._changed = threading.Condition()
        self._posting = threading.Lock()
        self._screens: list[Screen] = []
        self._thread: threading.Thread | None = None
        self._reading: Reading | None = None
        self._fresh = False  # the reading came after the last post
        self._standing = Standing()
        self._standing_s = float("-inf")  # when it was asked for, on the monotonic clock
        self._leaving: tuple[EvictionNotice, float, Served | None, str] | None = None
        if of.link is not None:
            of.link.on_seen = self._saw
        if of.eviction is not None:
            of.eviction.told = self._leaves

    def add(self, screen: Screen) -> None:
        """Tell this screen too."""
        with self._changed:
            self._screens.append(screen)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="paddle-gpu-watch", daemon=True)
                self._thread.start()
        self.look()

    def remove(self, screen: Screen) -> None:
        """Tell it no more. Repeatable."""
        with self._changed:
            self._screens = [other for other in self._screens if other is not screen]
        self.look()

    def look(self, anew: bool = False) -> None:
        """Somebody may look or look no more; ``anew``: something has happened that changes what it shows."""
        with self._changed:
            if anew:
                self._standing_s = float("-inf")
            self._fresh = True
            self._changed.notify_all()
        if self._runtime.link is not None:
            self._runtime.link.watch(self._period_s())

    def screen(self, comm_id: str) -> Screen | None:
        """Return the screen that browsers know by this id."""
        return next((screen for screen in self._screens if screen.comm_id == comm_id), None)

    def seen(self, besides: Screen | None) -> bool:
        """Whether a browser has said that it shows another screen."""
        return any(screen.period_s == LOOKING_S for screen in self._screens if screen is not besides)

    def outlook(self) -> Outlook:
        """Return how things stand, as far as it was asked for."""
        leaves = None if self._leaving is None else leaving(*self._leaving)
        stands, newest = self._standing, self._runtime.protection.last
        if newest is not None:
            stands = dataclasses.replace(stands, snapshot=last(newest))
        return Outlook(time.time(), stands, self._runtime.training.updates, self._reading, leaves)

    def glance(self) -> Outlook:
        """Ask for everything now, as far as it comes in a moment."""
        self.ask()
        if self._runtime.link is not None:
            self._runtime.link.watch(PERHAPS_S)
            with self._changed:
                self._changed.wait_for(lambda: self._reading is not None, GLANCE_S)
            self._runtime.link.watch(self._period_s())
        return self.outlook()

    def ask(self) -> None:
        """Ask for what changes slowly where it was not for a while. Raises nothing."""
        if (now_s := time.monotonic()) - self._standing_s >= STANDING_S:
            self._standing_s = now_s
            try:
                self._standing = standing(self._runtime)
            except Exception:
                log.exception("How this kernel stands could not be found out")

    def _period_s(self) -> float:
        return min((screen.period_s for screen in self._screens if screen.period_s > 0), default=0.0)

    def _saw(self, reading: Reading) -> None:
        """Called in the link's thread."""
        with self._changed:
            self._reading, self._fresh = reading, True
            self._changed.notify_all()

    def _leaves(self, notice: EvictionNotice, end_s: float, served: Served | None, text: str) -> None:
        """Tell everybody, who looks or not: it may be the last word. Called in the eviction's threads."""
        self._leaving = notice, end_s, served, text
        self._post(self._screens)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._period_s() > 0)
                # Readings give the beat; without them (no agent, a driver that hangs) the clock does.
                self._changed.wait_for(lambda: self._fresh, 1.5 * (self._period_s() or LOOKING_S))
                self._fresh = False
                looking = [screen for screen in self._screens if screen.period_s > 0]
            if self._leaving is None and looking:
                self.ask()
                self._post(looking)

    def _post(self, screens: list[Screen]) -> None:
        """Nothing of this may reach the user's code, or stop an eviction."""
        with self._posting:  # the last word of an eviction stays the last
            outlook = told(self.outlook())
            for screen in screens:
                try:
                    screen.post(outlook)
                except Exception:
                    log.exception("A screen is told no more")
                    self._screens = [other for other in self._screens if other is not screen]


_watch: Watch | None = None


def watch() -> Watch:
    """Return this kernel's watch, made at the first call, which comes from a cell."""
    global _watch
    if _watch is None:
        _watch = Watch(runtime())
    return _watch
