"""The gate over the update: while somebody else holds it, parameters and optimizer state stand still."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

_APPLY = ("loss", "startup_program", "params_grads", "param_group_idx")  # of Optimizer._apply_optimize


class Gate:
    """One per training; every update passes through ``around``, and a save holds it meanwhile.

    ``moves`` counts every known change of heavy state, ``touches`` those outside of updates, ``newcomers`` the
    optimizers that were seen for the first time. ``attention`` asks the next step boundary to look closer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._held = False  # by a save
        self._ending: BaseException | None = None
        self.moves = 0
        self.touches = 0
        self.newcomers = 0
        self.attention = False
        self.steps: set[CodeType] = set()  # methods that may make several updates, one for each group of parameters

    @property
    def updates(self) -> int:
        """How many updates have passed."""
        return self.moves - self.touches

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return an optimizer's method as an update that passes the gate; one within another is part of it.

        ``_apply_optimize`` is called in every step: what this adds must stay below a microsecond, and half of that is
        what a signature of any arguments would cost.
        """
        if tuple(inspect.signature(method).parameters)[1:] == _APPLY:
            return self._around_apply(method)
        return self._around_any(method)

    def _around_apply(self, method: Callable[..., Any]) -> Callable[..., Any]:
        acquire, release, gate = self._lock.acquire, self._lock.release, self

        @functools.wraps(method)
        def update(optimizer: Any, loss: Any, startup_program: Any, params_grads: Any, param_group_idx: Any = 0) -> Any:
            me = get_ident()
            if gate._owner == me:
                return method(optimizer, loss, startup_program, params_grads, param_group_idx)
            acquire()
            try:
                if gate._ending is not None:
                    raise gate._ending
                gate._owner = me
                return method(optimizer, loss, startup_program, params_grads, param_group_idx)
            finally:
                if gate._owner:
                    gate._owner = 0
                    gate.moves = optimizer._paddle_gpu_last = gate.moves + 1
                    if not optimizer._paddle_gpu_first:
                        gate._meet(optimizer)
                release()

        return update

    def _around_any(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def apply(optimizer: Any, loss: Any, startup_program: Any, params_grads: Any, param_group_idx: Any = 0) -> Any:
            return method(optimizer, *loss, **startup_program)

        passing = self._around_apply(apply)

        @functools.wraps(method)
        def update(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            return passing(optimizer, args, kwargs, None)

        return update

    def _meet(self, optimizer: Any) -> None:
        optimizer._paddle_gpu_first = self.moves
        self.newcomers += 1
        self.attention = True

    def inside(self) -> bool:
        """Whether the calling thread is in an update."""
        return self._owner == get_ident()

    def between(self) -> bool:
        """Whether some thread is in an optimizer's step: between two of its updates, if the gate is held."""
        frames: list[FrameType | None] = list(sys._current_frames().values())
        while frames:
            frame = frames.pop()
            if frame is not None:
                if frame.f_code in self.steps:
                    return True
                frames.append(frame.f_back)
        return False

    def touch(self) -> None:
        """Heavy state is changed by hand, outside of an update."""
        if self._owner != get_ident():
            self.touches += 1
            self.moves += 1

    def hold(self, timeout_s: float) -> bool:
        """Keep updates from beginning; False: one is still running after ``timeout_s``. May be let go by any thread."""
        held = self._lock.acquire(timeout=max(0.0, timeout_s))
        if held:
            self._held = True
        return held

    def let_go(self) -> None:
        """Let updates go on."""
        self._held = False
        self._lock.release()

    def let_go_if_held(self) -> None:
        """Let updates go on if ``hold`` has stopped them."""
        if self._held:
            self.let_go()

    def end(self, exception: BaseException | None) -> None:
        """Let every later update raise this exception (None: none any more)."""
        self._ending = exception
        self.attention = True

    def check(self) -> None:
        """Raise what ``end`` was given."""
        if self._ending is not None:
            raise self._ending


class Deadline:
    """Time that runs out: ``patience_s`` from now."""

    def __init__(self, patience_s: float) -> None:
        self._end_s = time.monotonic() + patience_s

    def left_s(self) -> float:
        return max(0.0, self._end_s - time.monotonic())
