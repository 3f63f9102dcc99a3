from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.placement.kubernetes.causes import cause_of, notice_of, remaining_s

NOW_S = datetime(2026, 12, 2, 14, 0, 0, tzinfo=timezone.utc).timestamp()
DELETED = {"deletionTimestamp": "2026-12-02T14:00:20Z"}


def condition(kind: str, reason: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": "True"}, {"type": kind, "status": status, "reason": reason}]}


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (condition("DisruptionTarget", "PreemptionByScheduler"), Cause.PREEMPTED),
        (condition("DisruptionTarget", "EvictionByEvictionAPI"), Cause.DRAINED),
        (condition("DisruptionTarget", "DeletionByTaintManager"), Cause.NODE_TAINTED),
        (condition("DisruptionTarget", "DeletionByPodGC"), Cause.NODE_LOST),
        (condition("TerminationTarget", "WorkloadEvictedDueToPreempted"), Cause.PREEMPTED),
        ({"reason": "Evicted"} | condition("DisruptionTarget", "TerminationByKubelet"), Cause.NODE_PRESSURE),
        ({"reason": "Terminated"} | condition("DisruptionTarget", "TerminationByKubelet"), Cause.NODE_SHUTDOWN),
        ({"reason": "DeadlineExceeded"}, Cause.DEADLINE),
        ({"containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled"}}}]}, Cause.OUT_OF_MEMORY),
        (condition("DisruptionTarget", "PreemptionByScheduler", "False"), None),
        ({"containerStatuses": [{"state": {"running": {}}}], "conditions": None}, None),
        ({}, None),
    ],
)
def test_each_cause_has_its_own_sign(status: dict[str, Any], cause: Cause | None) -> None:
    assert cause_of({"status": status}) is cause


def test_a_deletion_without_a_sign_is_somebodys() -> None:
    assert cause_of({"metadata": DELETED}) is Cause.SIGTERM


def test_the_time_left_is_the_api_servers_and_never_below_zero() -> None:
    assert remaining_s({"metadata": DELETED}, NOW_S) == 20
    assert remaining_s({"metadata": DELETED}, NOW_S + 60) == 0
    assert remaining_s({"metadata": {}}, NOW_S) is None


def test_the_whole_grace_is_left_before_the_deletion() -> None:
    pod = {
        "spec": {"terminationGracePeriodSeconds": 45},
        "status": condition("DisruptionTarget", "PreemptionByScheduler"),
    }
    assert notice_of(pod, NOW_S) == EvictionNotice(Cause.PREEMPTED, 45)
    assert notice_of(pod | {"metadata": DELETED}, NOW_S) == EvictionNotice(Cause.PREEMPTED, 20)


def test_who_has_ended_gets_no_notice() -> None:
    assert notice_of({"status": {"phase": "Failed", "reason": "Evicted"}}, NOW_S) is None
    assert notice_of({"status": {"phase": "Running"}}, NOW_S) is None
