"""Why a Pod is taken away, and how long it still has: read from the Pod alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.placement.kubernetes.times import epoch_s

_CONDITIONS = {  # (type, reason) of a condition that is True
    ("DisruptionTarget", "PreemptionByScheduler"): Cause.PREEMPTED,
    ("DisruptionTarget", "EvictionByEvictionAPI"): Cause.DRAINED,
    ("DisruptionTarget", "DeletionByTaintManager"): Cause.NODE_TAINTED,
    ("DisruptionTarget", "DeletionByPodGC"): Cause.NODE_LOST,
    ("DisruptionTarget", "TerminationByKubelet"): Cause.NODE_PRESSURE,  # a shutdown says so in the status
    ("TerminationTarget", "WorkloadEvictedDueToPreempted"): Cause.PREEMPTED,
}
_STATUS_REASONS = {
    "Evicted": Cause.NODE_PRESSURE,
    "Terminated": Cause.NODE_SHUTDOWN,
    "NodeShutdown": Cause.NODE_SHUTDOWN,
    "NodeLost": Cause.NODE_LOST,
    "DeadlineExceeded": Cause.DEADLINE,
    "Preempting": Cause.PREEMPTED,  # by the kubelet, for a Pod that the node cannot do without
}
_ENDED = ("Succeeded", "Failed")
_DEFAULT_GRACE_S = 30.0


def cause_of(pod: Mapping[str, Any]) -> Cause | None:
    """Return why ``pod`` loses or lost its node; None where nothing in it speaks of that.

    A deletion without a sign is SIGTERM: somebody ended it, and we know no more.
    """
    status = pod.get("status", {})
    if (cause := _STATUS_REASONS.get(status.get("reason", ""))) is not None:
        return cause
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True":
            cause = _CONDITIONS.get((condition.get("type"), condition.get("reason")))
            if cause is not None:
                return cause
    if any(_ended_by_memory(container) for container in status.get("containerStatuses") or ()):
        return Cause.OUT_OF_MEMORY
    return Cause.SIGTERM if _deadline_s(pod) is not None else None


def remaining_s(pod: Mapping[str, Any], now_s: float) -> float | None:
    """Return the seconds until the node ends ``pod`` by force, not below 0; None where no deletion is under way.

    ``now_s`` is the time of the API server, in seconds of the epoch: this machine's clock may differ from it.
    """
    deadline_s = _deadline_s(pod)
    return None if deadline_s is None else max(0.0, deadline_s - now_s)


def notice_of(pod: Mapping[str, Any], now_s: float) -> EvictionNotice | None:
    """Return what a running ``pod`` is to be told; None where it is not taken away, or has ended already.

    Between the sign and the deletion, milliseconds apart, the whole grace is still to come.
    """
    cause = cause_of(pod)
    if cause is None or cause is Cause.OUT_OF_MEMORY or pod.get("status", {}).get("phase") in _ENDED:
        return None
    left_s = remaining_s(pod, now_s)
    if left_s is None:
        left_s = float(pod.get("spec", {}).get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S))
    return EvictionNotice(cause, left_s)


def _deadline_s(pod: Mapping[str, Any]) -> float | None:
    text = pod.get("metadata", {}).get("deletionTimestamp")
    return None if text is None else epoch_s(text)


def _ended_by_memory(container: Mapping[str, Any]) -> bool:
    terminated = container.get("state", {}).get("terminated") or {}
    return bool(terminated.get("reason") == "OOMKilled")
