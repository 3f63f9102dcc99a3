"""The gate over the update: while somebody else holds it, parameters and optimizer state stand still.

An update passes in every step, a save comes now and then: so the update only notes that it is inside and looks at a
flag, both without a lock, and the save waits until nobody is inside. Whoever sets the flag first and looks second, and
whoever notes first and looks second, cannot miss each other: Python's interpreter lock orders the two.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType
from typing import Any

from jupyter_paddle_gpu.checkpoint.stacks import outwards

_APPLY = ("loss", "startup_program", "params_grads", "param_group_idx")  # of Optimizer._apply_optimize
_LOOK_S = 0.0002  # a save looks this often whether the update that runs has ended


class Gate:
    """One per training; every update passes through ``around``, and a save holds it meanwhile.

    ``moves`` counts every known change of heavy state, ``touches`` those outside of updates, ``newcomers`` the
    optimizers that were seen for the first time. ``attention`` asks the next step boundary to look closer.
    """

    def __init__(self) -> None:
        self._inside: dict[object, None] = {}  # a key for each update that runs
        self._changed = threading.Condition()
        self._held = False  # by a save
        self._ending: BaseException | None = None
        self._shut = False  # held or ending
        self._update: CodeType | None = None
        self.moves = 0
        self.touches = 0
        self.newcomers = 0
        self.attention = False
        self.waiting = 0  # updates that wait at the gate
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
        inside, gate = self._inside, self

        def update(optimizer: Any, loss: Any, startup_program: Any, params_grads: Any, param_group_idx: Any = 0) -> Any:
            key = object()
            try:
                inside[key] = None
                if gate._shut:
                    gate._wait(key)
                try:
                    return method(optimizer, loss, startup_program, params_grads, param_group_idx)
                finally:
                    gate.moves = optimizer._paddle_gpu_last = gate.moves + 1
                    if not optimizer._paddle_gpu_first:
                        gate._meet(optimizer)
            finally:
                inside.pop(key, None)  # not there where Ctrl-C came first

        self._update = update.__code__
        return functools.wraps(method)(update)

    def _wait(self, key: object) -> None:
        """Let an update wait at the shut gate. Raises what ``end`` was given."""
        if sum(frame.f_code is self._update for frame in outwards(sys._getframe())) > 1:
            return  # within another one, which the save waits for
        del self._inside[key]
        with self._changed:
            self.waiting += 1
            try:
                self._changed.wait_for(lambda: not self._held)
            finally:
                self.waiting -= 1
            self.check()
            self._inside[key] = None

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
        return any(frame.f_code is self._update for frame in outwards(sys._getframe()))

    def between(self) -> bool:
        """Whether some thread is in an optimizer's step: between two of its updates, if the gate is held."""
        return any(frame.f_code in self.steps for top in sys._current_frames().values() for frame in outwards(top))

    def touch(self) -> None:
        """Heavy state is changed by hand, outside of an update."""
        if not self._inside:
            self.touches += 1
            self.moves += 1

    def hold(self, timeout_s: float) -> bool:
        """Keep updates from beginning; False: one is still running after ``timeout_s``. May be let go by any thread."""
        end_s = time.monotonic() + timeout_s
        with self._changed:
            if not self._changed.wait_for(lambda: not self._held, max(0.0, timeout_s)):
                return False
            self._held = self._shut = True
        while self._inside:
            if time.monotonic() >= end_s:
                self.let_go()
                return False
            time.sleep(_LOOK_S)
        return True

    def let_go(self) -> None:
        """Let updates go on."""
        with self._changed:
            self._held = False
            self._shut = self._ending is not None
            self._changed.notify_all()

    def let_go_if_held(self) -> None:
        """Let updates go on if ``hold`` has stopped them."""
        if self._held:
            self.let_go()

    def end(self, exception: BaseException | None) -> None:
        """Let every later update raise this exception (None: none any more)."""
        with self._changed:
            self._ending = exception
            self._shut = self._held or exception is not None
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
