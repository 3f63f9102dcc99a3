"""Figures with their bounds, as a table or as JSON."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured value: ``must`` is its bound in words, ``holds`` says whether it is met, ``detail`` explains."""

    name: str
    value: float
    unit: str
    must: str
    holds: bool
    detail: str = ""


def paired(first: Callable[[], float], second: Callable[[], float], rounds: int) -> tuple[list[float], list[float]]:
    """Measure two things in turn, so that what else the machine does meets both alike."""
    a, b = [], []
    for index in range(rounds):
        if index % 2:
            b.append(second())
            a.append(first())
        else:
            a.append(first())
            b.append(second())
    return a, b


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: Sequence[float]) -> float:
    """Return the noise of a series: its interquartile range over its median."""
    quarters = statistics.quantiles(values, n=4)
    return (quarters[2] - quarters[0]) / statistics.median(values)


def as_table(figures: Iterable[Figure]) -> str:
    header = ("benchmark", "measured", "must be", "", "")
    rows = [header]
    for figure in figures:
        value = f"{figure.value:.3g} {figure.unit}".strip()
        rows.append((figure.name, value, figure.must, "ok" if figure.holds else "MISSED", figure.detail))
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def as_json(figures: Iterable[Figure]) -> str:
    return json.dumps({figure.name: dataclasses.asdict(figure) for figure in figures})
