from __future__ import annotations

import pytest

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER, Ladder


def test_a_kernelspec_s_words_become_a_request() -> None:
    request = GpuRequest.from_config({"gpus": 2, "memory": "16Gi", "tier": "batch", "grace": "90s"})
    assert request == GpuRequest(2, 16 * 2**30, "batch", 90.0)


def test_what_is_not_said_takes_the_default_or_stays() -> None:
    assert GpuRequest.from_config({}) == GpuRequest(1, None, "notebook", 60.0)
    assert GpuRequest(2, 5 << 30, "batch", 9).changed(grace="1m", gpus=None) == GpuRequest(2, 5 << 30, "batch", 60.0)


def test_the_time_between_snapshots_is_a_duration_or_a_word() -> None:
    request = GpuRequest.from_config({"every": "10m"})
    assert request.every_s == 600.0
    assert request.changed(tier="batch").every_s == 600.0
    assert request.changed(every="auto").every_s is None
    assert request.changed(every="off").every_s == 0.0


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"gpus": -1}, "-1"),
        ({"gpus": "2"}, "'2'"),
        ({"gpus": True}, "True"),
        ({"gpus": 1.5}, "1.5"),
        ({"grace": "0.5s"}, "0.5"),
        ({"grace": "2h"}, "2 h 00 min"),
        ({"every": "1s"}, "1 s"),
        ({"every": "sometimes"}, "sometimes"),
        ({"memory": "lots"}, "lots"),
        ({"memory": "0"}, "0"),
        ({"memory": "16"}, "16 bytes is no memory to run in"),
        ({"memory": True}, "True"),
        ({"memory": 10**400}, "no memory to run in"),
        ({"memory": "9" * 400}, "is not a size"),
        ({"grcae": "60s"}, "grcae"),
    ],
)
def test_bad_input_is_named(config: dict[str, object], named: str) -> None:
    with pytest.raises(RequestError) as caught:
        GpuRequest.from_config(config)
    assert named in caught.value.fault
    assert caught.value.next_step


def test_the_default_ladder_is_the_published_one() -> None:
    assert [(tier.name, tier.priority, tier.preempts) for tier in DEFAULT_LADDER] == [
        ("urgent", 1_000_000, True),
        ("service", 900_000, True),
        ("experiment", 500_000, True),
        ("training", 300_000, True),
        ("batch", 100_000, True),
        ("notebook", -10, False),
    ]


def test_an_administrator_s_ladder_is_ordered_by_priority() -> None:
    ladder = Ladder.from_mapping({"low": {"priority": 1, "preempts": False}, "high": {"priority": 5}})
    assert [(tier.name, tier.preempts) for tier in ladder] == [("high", True), ("low", False)]


@pytest.mark.parametrize("fields", [{}, {"priority": "5"}, {"priority": True}, {"priority": 5, "preemts": True}])
def test_a_tier_that_is_not_understood_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(RequestError, match="odd"):
        Ladder.from_mapping({"odd": fields})


def test_a_ladder_without_a_tier_is_refused() -> None:
    with pytest.raises(RequestError, match="no tier"):
        Ladder.from_mapping({})


def test_an_unknown_tier_lists_those_there_are() -> None:
    with pytest.raises(RequestError, match=r"'vip'.*urgent, service, experiment"):
        DEFAULT_LADDER.get("vip")
