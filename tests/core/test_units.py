from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.core.units import (
    format_duration,
    format_memory,
    format_quantity,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("16Gi", 16 * 2**30), ("500M", 500_000_000), ("1.5Ki", 1536), ("7", 7), (" 2 GiB ", 2 * 2**30), ("3k", 3000)],
)
def test_sizes_are_kubernetes_quantities(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "many", "16 gigs", "-1Gi", "1,5Gi", "Gi", "1Gi2", "ki"])
def test_a_text_that_is_no_size_is_named_with_an_example(text: str) -> None:
    with pytest.raises(RequestError, match="16Gi") as caught:
        parse_size(text)
    assert repr(text) in caught.value.fault


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("10m", 600), ("1h30m", 5400), ("90", 90), ("250ms", 0.25), ("1m 30s", 90)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "1 day", "s", "1h30x"])
def test_a_text_that_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_duration(text)
    assert repr(text) in caught.value.fault


@given(st.integers(min_value=0, max_value=10**15))
def test_a_formatted_size_has_three_digits_at_most_before_its_unit(nbytes: int) -> None:
    number, unit = format_size(nbytes).split(" ")
    factor = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]
    assert float(number) * factor == pytest.approx(nbytes, rel=0.06, abs=0.5)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (999, "999 B"), (2_100_000_000, "2.1 GB"), (431_700_000, "432 MB"), (10**15, "1000.0 TB")],
)
def test_sizes_to_read(nbytes: int, text: str) -> None:
    assert format_size(nbytes) == text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1024, "1.0 KiB"), (80 * 2**30, "80 GiB"), (2_147_483_648, "2.0 GiB")],
)
def test_memory_to_read(nbytes: int, text: str) -> None:
    assert format_memory(nbytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"),
        (0.0123, "12 ms"),
        (0.42, "0.4 s"),
        (42.4, "42 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (3599.7, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations_to_read(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_sizes_to_ask_for_keep_their_unit() -> None:
    assert [format_quantity(parse_size(text)) for text in ("16Gi", "512Mi", "2Ti")] == ["16Gi", "512Mi", "2Ti"]
    assert format_quantity(10**9) == "1.0 GB"
