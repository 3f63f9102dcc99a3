"""The gate over the update: while somebody else holds it, parameters and optimizer state stand still."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

_INNER = ("loss", "startup_program", "params_grads", "param_group_idx")  # of Optimizer._apply_optimize


class Gate:
    """One per training; every update passes through ``around``, and a save holds it meanwhile.

    ``moves`` counts every known change of heavy state, ``touches`` those outside of updates, ``newcomers`` the
    optimizers that were seen for the first time. ``attention`` asks the next step boundary to look closer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._ending: BaseException | None = None
        self.moves = 0
        self.touches = 0
        self.newcomers = 0
        self.attention = False

    @property
    def updates(self) -> int:
        """How many updates have passed."""
        return self.moves - self.touches

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return an optimizer's method as an update that passes the gate; one within another is part of it.

        It is called in every step and must stay far below a microsecond: a signature of any arguments would cost half
        of that, so the two that are called in every step have their own.
        """
        parameters = tuple(inspect.signature(method).parameters)
        if len(parameters) == 1:
            return self._around_step(method)
        general = self._around_any(method)
        return self._around_inner(method, general) if parameters[1:] == _INNER else general

    def _around_step(self, method: Callable[..., Any]) -> Callable[..., Any]:
        acquire, release, gate = self._lock.acquire, self._lock.release, self

        @functools.wraps(method)
        def update(optimizer: Any) -> Any:
            me = get_ident()
            if gate._owner == me:
                return method(optimizer)
            acquire()
            try:
                if gate._ending is not None:
                    raise gate._ending
                gate._owner = me
                return method(optimizer)
            finally:
                if gate._owner:
                    gate._owner = 0
                    gate.moves = optimizer._paddle_gpu_last = gate.moves + 1
                    if not optimizer._paddle_gpu_first:
                        gate._meet(optimizer)
                release()

        return update

    def _around_any(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def update(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            return self._around_step(lambda optimizer: method(optimizer, *args, **kwargs))(optimizer)

        return update

    def _around_inner(self, method: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
        gate = self

        @functools.wraps(method)
        def update(optimizer: Any, loss: Any, startup_program: Any, params_grads: Any, param_group_idx: Any = 0) -> Any:
            inner = method if gate._owner == get_ident() else general
            return inner(optimizer, loss, startup_program, params_grads, param_group_idx)

        return update

    def _meet(self, optimizer: Any) -> None:
        optimizer._paddle_gpu_first = self.moves
        self.newcomers += 1
        self.attention = True

    def inside(self) -> bool:
        """Whether the calling thread is in an update."""
        return self._owner == get_ident()

    def touch(self) -> None:
        """Heavy state is changed by hand, outside of an update."""
        if self._owner != get_ident():
            self.touches += 1
            self.moves += 1

    def hold(self, timeout_s: float) -> bool:
        """Keep updates from beginning; False: one is still running after ``timeout_s``. May be let go by any thread."""
        return self._lock.acquire(timeout=max(0.0, timeout_s))

    def let_go(self) -> None:
        """Let updates go on."""
        self._lock.release()

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
