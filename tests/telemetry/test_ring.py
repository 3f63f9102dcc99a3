"""The last hour of readings."""

from __future__ import annotations

from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.telemetry.ring import HISTORY_S, SHORTEST_S, UNWATCHED_PERIOD_S, WATCHED_PERIOD_S, Ring


def test_an_hour_is_kept_and_no_more() -> None:
    ring = Ring()
    for second in range(2 * int(HISTORY_S)):
        ring.add(second, Reading(float(second)))
    kept = ring.after(-1)
    assert len(kept) == HISTORY_S + 1
    assert kept[-1].reading.at_s - kept[0].reading.at_s == HISTORY_S


def test_a_slow_hour_is_as_long() -> None:
    ring = Ring()
    for tick in range(1000):
        ring.add(tick, Reading(tick * UNWATCHED_PERIOD_S))
    kept = ring.after(-1)
    assert kept[-1].reading.at_s - kept[0].reading.at_s == HISTORY_S


def test_an_hour_is_kept_of_readings_that_come_ten_times_a_second() -> None:
    ring = Ring()
    for tick in range(40_000):
        ring.add(tick, Reading(tick / 10))
    kept = ring.after(-1)
    assert len(kept) <= HISTORY_S / SHORTEST_S + 2
    assert kept[-1].reading.at_s == 3999.9
    assert kept[-1].reading.at_s - kept[0].reading.at_s > HISTORY_S - WATCHED_PERIOD_S


def test_what_lies_ahead_goes_when_the_clock_is_set_back() -> None:
    ring = Ring()
    for number, at_s in enumerate((100.0, 200.0, 300.0, 150.0)):
        ring.add(number, Reading(at_s))
    assert [numbered.reading.at_s for numbered in ring.after(-1)] == [100.0, 150.0]


def test_who_comes_back_goes_on_where_he_was() -> None:
    ring = Ring()
    for number in range(1, 6):
        ring.add(number, Reading(float(number)))
    assert [numbered.number for numbered in ring.after(3)] == [4, 5]
    assert list(ring.after(5)) == []
