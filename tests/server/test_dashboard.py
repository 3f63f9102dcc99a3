"""The Grafana dashboard speaks of metrics and labels that a server really has, and of all; so does what is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jupyter_events import yaml
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import CollectorRegistry

from jupyter_paddle_gpu.server.events import SCHEMA
from jupyter_paddle_gpu.server.metrics import SessionMetrics
from jupyter_paddle_gpu.server.view import SessionView

ENDINGS = {"gauge": ("",), "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}


def families() -> dict[str, tuple[set[str], set[str]]]:
    """Return the series and the labels of each metric."""
    metrics = SessionMetrics(CollectorRegistry())
    found = {}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            (family,) = metric.describe()
            labels = {*metric._labelnames, *(("le",) if family.type == "histogram" else ())}
            found[family.name] = ({family.name + ending for ending in ENDINGS[family.type]}, labels)
    return found


def dashboard() -> dict[str, Any]:
    text = resources.files("jupyter_paddle_gpu").joinpath("share/grafana/paddle-gpu.json").read_text()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def queries() -> Iterator[tuple[str, str]]:
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


@pytest.mark.parametrize(("query", "legend"), list(queries()))
def test_a_panel_asks_for_what_there_is(query: str, legend: str) -> None:
    series = {name: labels for names, labels in families().values() for name in names}
    asked = re.findall(r"paddle_gpu_\w+", query)
    assert asked
    assert set(asked) <= set(series)
    by = {label for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(", ")}
    assert by | set(re.findall(r"{{(\w+)}}", legend)) <= set.union(*(series[name] for name in asked))


def test_every_metric_has_a_panel() -> None:
    asked = {name for query, _legend in queries() for name in re.findall(r"paddle_gpu_\w+", query)}
    assert [family for family, (series, _labels) in families().items() if not series & asked] == []


def test_what_is_written_for_administrators_names_every_metric_and_every_field_of_the_events() -> None:
    written = (Path(__file__).parents[2] / "notebooks" / "observing.md").read_text()
    named = set(re.findall(r"`([\w.]+)`", written))
    series = {name.removesuffix("_bucket") for names, _labels in families().values() for name in names}
    assert {name for name in series if not name.endswith(("_sum", "_count"))} <= named
    schema = yaml.load(SCHEMA)
    assert set(schema["properties"]) == {field.name for field in fields(SessionView)} <= named


def test_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard()["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(places)
