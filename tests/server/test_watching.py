"""What an agent is told about looking, also one that does not know the word."""

from __future__ import annotations

from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.core.wire import Watch
from jupyter_paddle_gpu.server.sight import NOW, Sight
from jupyter_paddle_gpu.server.watching import Watching
from jupyter_paddle_gpu.telemetry.ring import UNWATCHED_PERIOD_S, WATCHED_PERIOD_S


def viewer() -> None:
    """Somebody who looks."""


def test_an_agent_is_told_each_change_once() -> None:
    sight = Sight()
    watching = Watching("s", sight)
    assert watching.look() is None
    sight.begin(viewer)
    assert watching.look() == Watch(WATCHED_PERIOD_S)
    assert watching.saw(Reading(1)) is None
    assert watching.look() is None
    sight.end(viewer)
    assert watching.look() == Watch(UNWATCHED_PERIOD_S)
    assert sight.after("")[1] == [("s", Reading(1))]


def test_who_needs_no_history_begins_with_the_newest() -> None:
    sight = Sight()
    for at_s in (1.0, 2.0):
        sight.saw("s", Reading(at_s))
    sight.saw("t", Reading(1.5))
    mark, fresh = sight.after(NOW)
    assert fresh == [("s", Reading(2.0)), ("t", Reading(1.5))]
    assert sight.after(mark)[1] == []


def test_one_that_does_not_answer_is_told_once() -> None:
    sight = Sight()
    watching = Watching("s", sight)
    told = []
    for _ in range(100):
        sight.begin(viewer)
        told.append(watching.look())
        sight.end(viewer)
        told.append(watching.look())
    assert told[0] == Watch(WATCHED_PERIOD_S)
    assert set(told[1:]) == {None}
    assert watching.saw(Reading(1)) == Watch(UNWATCHED_PERIOD_S)  # it was only slow


def test_the_next_agent_is_told_anew() -> None:
    sight = Sight()
    watching = Watching("s", sight)
    sight.begin(viewer)
    watching.look()
    watching.begin()
    assert watching.look() == Watch(WATCHED_PERIOD_S)
