"""The thread that looks: when it runs, when it rests, and that a driver that hangs holds up nobody but itself."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.telemetry.sampler import SHORTEST_PERIOD_S, Sampler

PATIENCE_S = 30.0
NAME = "paddle-gpu-sampler"


class Watched:
    """A sampler of the host alone, and what it has reported."""

    def __init__(self) -> None:
        self.readings: queue.Queue[Reading] = queue.Queue()
        self.sampler = Sampler([], self.readings.put)

    def next(self) -> Reading:
        return self.readings.get(timeout=PATIENCE_S)

    def drop(self) -> None:
        """Pass over what was reported so far."""
        for _ in range(self.readings.qsize()):
            self.readings.get_nowait()


@pytest.fixture
def watched() -> Iterator[Watched]:
    one = Watched()
    yield one
    one.sampler.close()
    for thread in threading.enumerate():
        if thread.name == NAME:
            thread.join(PATIENCE_S)


def running() -> bool:
    return any(thread.name == NAME for thread in threading.enumerate())


def test_nothing_runs_before_somebody_looks(watched: Watched) -> None:
    assert not running()
    watched.sampler.watch(0)
    assert not running()
    watched.sampler.watch(60)
    watched.next()
    assert running()


def test_it_looks_again_and_again(watched: Watched) -> None:
    watched.sampler.watch(SHORTEST_PERIOD_S)
    readings = [watched.next() for _ in range(4)]
    assert all(earlier.at_s < later.at_s for earlier, later in pairwise(readings))
    assert readings[0].host.cpu_percent is None
    assert readings[-1].host.memory_used_bytes is not None


def test_a_shorter_period_counts_at_once(watched: Watched) -> None:
    watched.sampler.watch(3600)
    watched.next()
    watched.sampler.watch(SHORTEST_PERIOD_S)
    watched.next()


def test_it_rests_when_nobody_looks_and_looks_again(watched: Watched) -> None:
    watched.sampler.watch(SHORTEST_PERIOD_S)
    watched.next()
    watched.sampler.watch(0)
    watched.drop()
    watched.sampler.watch(3600)
    watched.next()


@pytest.mark.parametrize("end", [Sampler.close, lambda sampler: sampler.watch(0)])
def test_nothing_is_reported_after_the_end(watched: Watched, end: Callable[[Sampler], None]) -> None:
    watched.sampler.watch(SHORTEST_PERIOD_S)
    watched.next()
    end(watched.sampler)
    watched.drop()
    with pytest.raises(queue.Empty):
        watched.readings.get(timeout=10 * SHORTEST_PERIOD_S)


def test_a_closed_one_does_not_begin_again(watched: Watched) -> None:
    watched.sampler.close()
    watched.sampler.watch(SHORTEST_PERIOD_S)
    assert not running()
    watched.sampler.close()
