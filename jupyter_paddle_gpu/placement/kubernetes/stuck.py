"""A Pod that has its node and does not come to its agent: what holds it up, and when there is no more hope."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from jupyter_paddle_gpu.core.errors import PaddleGpuError, PlacementError, PlaceTaken
from jupyter_paddle_gpu.core.units import format_duration
from jupyter_paddle_gpu.placement.kubernetes import podstate
from jupyter_paddle_gpu.placement.kubernetes.api import ApiRefused, ApiUnreachable
from jupyter_paddle_gpu.placement.kubernetes.causes import cause_of
from jupyter_paddle_gpu.placement.kubernetes.cluster import Cluster
from jupyter_paddle_gpu.placement.kubernetes.pods import Known
from jupyter_paddle_gpu.placement.kubernetes.reasons import Reason, Sign, explain
from jupyter_paddle_gpu.placement.kubernetes.times import epoch_s

LOOK_S, LONGEST_LOOK_S = 3.0, 60.0  # between two looks at the events of a Pod that does not start
RECENT_S = 180.0  # a kubelet tries a volume again within two minutes, and says so each time


class Stuck:
    """One Pod on its way to its agent."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._told: Reason | None = None  # by the events of the Pod

    def reason(self) -> Reason | None:
        """Return what holds the Pod up; None where nothing is known to."""
        return podstate.reason(self._cluster.pods.now(self._name).pod) or self._told

    async def hopeless(self) -> PaddleGpuError:
        """Return, once it is clear that the Pod's agent will not answer, why. PlaceTaken: another Pod may fare better.

        What may pass is waited for, as long as the administrator's limit allows.
        """
        held_s, look_s = 0.0, LOOK_S
        while held_s < (limit_s := self._cluster.settings.stuck_limit_s):
            try:
                return await asyncio.wait_for(self._cluster.pods.until(self._name, _over), min(look_s, limit_s))
            except asyncio.TimeoutError:
                await self._look()
            reason = self.reason()
            held_s = 0.0 if reason is not None and reason.moves else held_s + look_s
            look_s = min(LONGEST_LOOK_S, 2 * look_s)
        reason = self.reason() or Reason("The Pod does not start, and nothing says why", "Ask for it again.", "")
        step = f"It was so for {format_duration(held_s)}. {reason.next_step}\n  {reason.raw}"
        return PlacementError(reason.fault, step.rstrip())

    async def _look(self) -> None:
        """Read the events of a Pod that says nothing itself: of its volumes it never does."""
        pod = self._cluster.pods.now(self._name).pod
        if podstate.signs(pod):
            self._told = None
        elif podstate.runs(pod):
            self._told = _silent(podstate.address(pod))
        else:
            try:
                self._told = _told_by(await self._cluster.events(pod), self._cluster.api.now_s())
            except ApiRefused as error:
                fault = f"What holds the Pod up cannot be read: {error.fault}"
                self._told = Reason(fault, error.next_step, "", passes=True, moves=True)
            except ApiUnreachable:
                return  # what was told last stands


def _over(known: Known) -> PaddleGpuError | None:
    """Return the error of a Pod whose agent will not answer any more; None: it may."""
    reason = podstate.reason(known.pod)
    if podstate.leaving(known):
        cause = cause_of(known.pod)
        if podstate.refused_by_node(known.pod):
            return PlaceTaken(reason.fault if reason else "The node refused the Pod", by_node=True)
        if cause is not None or known.deleted:
            by = cause.value if cause else "removed"
            return PlaceTaken(f"The Pod was taken away before its kernel started ({by})")
    elif reason is None or not reason.lasts:
        return None
    if reason is None:
        return PlacementError("The Pod's agent ended at once", "Its image may not be the one of this server's version.")
    return reason.error()


def _silent(address: str) -> Reason:
    return Reason(
        f"The Pod runs, but its agent has not answered at {address} yet",
        "Can this server reach the Pods of the cluster? A NetworkPolicy may forbid it.",
        "",
        passes=True,
    )


def _told_by(events: list[Mapping[str, Any]], now_s: float) -> Reason | None:
    """Return what the newest event that is understood says; a warning that was not repeated is over."""
    lasting = [event for event in events if event.get("type") == "Normal" or now_s - _at_s(event) < RECENT_S]
    lasting.sort(key=_at_s, reverse=True)
    told = explain(Sign(str(event.get("reason", "")), str(event.get("message", ""))) for event in lasting)
    return told if told is not None and told.known else None


def _at_s(event: Mapping[str, Any]) -> float:
    return epoch_s(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])
