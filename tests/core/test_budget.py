from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_paddle_gpu.core.budget import Part, estimate, patience_s, shortest_step_s, what_fits


def test_the_boundary_state_is_copied_where_that_costs_a_thousandth_of_a_step() -> None:
    assert shortest_step_s([2e-6]) == pytest.approx(0.002)


def test_a_step_that_keeps_a_notice_waiting_may_cost_up_to_a_hundredth() -> None:
    assert shortest_step_s([100e-6]) == 0.015
    assert shortest_step_s([500e-6]) == pytest.approx(0.05)


def test_one_copy_that_was_disturbed_does_not_end_the_copying() -> None:
    assert shortest_step_s([100e-6, 5e-3, 120e-6]) == shortest_step_s([100e-6])


def test_an_unknown_rate_predicts_nothing() -> None:
    unknown = estimate(10**9, None)
    assert (unknown.seconds, unknown.fits(60.0)) == (None, None)


def test_a_save_that_takes_longer_than_the_grace_does_not_fit() -> None:
    save = estimate(2 * 10**9, 10**9, fixed_s=0.05)
    assert save.seconds == 2.05
    assert save.fits(2.05)
    assert not save.fits(2.0)


@given(st.floats(0, 3600), st.none() | st.floats(0, 3600))
def test_patience_always_leaves_the_time_of_the_save(remaining_s: float, save_s: float | None) -> None:
    patience = patience_s(remaining_s, save_s)
    assert 0 <= patience <= remaining_s
    if save_s is not None and save_s <= remaining_s:
        assert remaining_s - patience >= save_s - 1e-9


def test_a_notice_waits_for_half_of_what_the_save_leaves_and_for_a_fifth_where_that_is_unknown() -> None:
    assert patience_s(30.0, 10.0) == 10.0
    assert patience_s(30.0, None) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("all_s", "trained_s", "left_s", "earlier", "part"),
    [
        (None, None, 1.0, True, Part.ALL),
        (10.0, 2.0, 10.0, True, Part.ALL),
        (10.0, 2.0, 9.0, True, Part.TRAINED),
        (10.0, 2.0, 1.0, True, Part.NOTHING),
        (10.0, 2.0, 1.0, False, Part.TRAINED),
        (10.0, 10.0, 1.0, True, Part.NOTHING),
        (10.0, 10.0, 1.0, False, Part.ALL),
    ],
)
def test_what_trains_comes_first_and_an_earlier_snapshot_stays_where_nothing_fits(
    all_s: float | None, trained_s: float | None, left_s: float, earlier: bool, part: Part
) -> None:
    assert what_fits(all_s, trained_s, left_s, earlier) is part


def test_what_is_on_the_disk_already_takes_no_time() -> None:
    assert estimate(10**9, 10**9, fixed_s=0.0, to_write=10**7).seconds == pytest.approx(0.01)


def test_a_small_save_says_nothing_of_a_large_one() -> None:
    """50 bytes in 10 ms are no 5 kB a second: for a gigabyte that would be two days, and no notice would wait."""
    assert estimate(10**9, 5e3, measured_bytes=50).seconds is None
    assert estimate(100, 5e3, measured_bytes=50).seconds is not None
    assert estimate(10**9, 1e9, measured_bytes=10**7).seconds is not None
