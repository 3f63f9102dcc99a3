"""The gate: no update runs while it is held, whoever updates, however deep, and it opens again whatever happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from jupyter_paddle_gpu.checkpoint.gate import Gate

DEADLINE_S = 20.0


class Optimizer:
    """As little of paddle's as the gate sees; ``work`` is what an update does."""

    _paddle_gpu_first = _paddle_gpu_last = 0

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work

    def _apply_optimize(
        self, loss: object, startup_program: object, params_grads: object, param_group_idx: object = 0
    ) -> object:
        return self.work()


def gated(gate: Gate, work: Callable[[], object]) -> Callable[[], object]:
    update = gate.around(Optimizer._apply_optimize)
    return lambda: update(Optimizer(work), None, None, [])


def eventually(condition: Callable[[], object]) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.001)


class Beside:
    """Runs something in another thread, and keeps what came of it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work, self.result, self.error = work, object(), BaseException()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001  # looked at by the test
            self.error = error

    def ended(self) -> bool:
        return not self.thread.is_alive()


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_no_update_begins_while_the_gate_is_held_and_all_begin_afterwards(gate: Gate) -> None:
    began: list[int] = []
    assert gate.hold(1.0)
    waiting = [Beside(gated(gate, lambda: began.append(1))) for _ in range(3)]
    eventually(lambda: not gate._inside)
    assert not any(beside.ended() for beside in waiting)
    assert (began, gate.moves) == ([], 0)
    gate.let_go()
    eventually(lambda: all(beside.ended() for beside in waiting))
    assert (began, gate.moves) == ([1, 1, 1], 3)


def test_the_gate_is_not_to_be_had_while_an_update_runs(gate: Gate) -> None:
    go_on, running = threading.Event(), threading.Event()

    def work() -> None:
        running.set()
        go_on.wait(DEADLINE_S)

    updating = Beside(gated(gate, work))
    running.wait(DEADLINE_S)
    assert not gate.hold(0.01)
    holding = Beside(lambda: gate.hold(DEADLINE_S))
    go_on.set()
    eventually(lambda: updating.ended() and holding.ended())
    assert holding.result is True


def test_an_update_within_an_update_does_not_wait_for_the_save_that_waits_for_both(gate: Gate) -> None:
    running, held = threading.Event(), threading.Event()

    def outer() -> object:
        running.set()
        held.wait(DEADLINE_S)
        return gated(gate, lambda: "inner")()

    updating = Beside(gated(gate, outer))
    running.wait(DEADLINE_S)
    holding = Beside(lambda: gate.hold(DEADLINE_S))
    eventually(lambda: gate._held)
    held.set()
    eventually(lambda: updating.ended() and holding.ended())
    assert (updating.result, holding.result) == ("inner", True)


def test_an_update_that_fails_leaves_the_gate_open(gate: Gate) -> None:
    with pytest.raises(ZeroDivisionError):
        gated(gate, lambda: 1 / 0)()
    assert gate.hold(0.0)


def test_a_training_that_is_to_end_ends_at_the_gate_where_it_waits(gate: Gate) -> None:
    assert gate.hold(1.0)
    updating = Beside(gated(gate, lambda: "updated"))
    gate.end(KeyError("over"))
    gate.let_go()
    eventually(updating.ended)
    assert isinstance(updating.error, KeyError)
    with pytest.raises(KeyError):
        gated(gate, lambda: "updated")()
    assert gate.moves == 0
    gate.end(None)
    assert gated(gate, lambda: "updated")() == "updated"


def test_an_update_knows_that_it_is_one(gate: Gate) -> None:
    assert not gate.inside()
    assert gated(gate, gate.inside)() is True
    elsewhere: list[Beside] = []
    gated(gate, lambda: elsewhere.append(Beside(gate.inside)))()
    eventually(elsewhere[0].ended)
    assert elsewhere[0].result is False


def test_saves_and_updates_never_meet(gate: Gate) -> None:
    """Two threads update, two save, all as fast as they can."""
    inside: list[int] = []
    met: list[int] = []
    over = threading.Event()

    def work() -> None:
        inside.append(1)
        sum(range(50))
        inside.pop()

    def train() -> None:
        update = gated(gate, work)
        while not over.is_set():
            update()

    def save() -> None:
        for _ in range(100):
            if gate.hold(DEADLINE_S):
                met.extend(inside)
                time.sleep(0.0001)
                met.extend(inside)
                gate.let_go()

    trainings = [Beside(train) for _ in range(2)]
    saves: list[Any] = [Beside(save) for _ in range(2)]
    eventually(lambda: all(beside.ended() for beside in saves))
    over.set()
    eventually(lambda: all(beside.ended() for beside in trainings))
    assert met == []
    assert gate.moves > 0
