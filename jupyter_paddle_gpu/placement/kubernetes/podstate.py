"""How a Pod of ours stands, read from the Pod alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_paddle_gpu.core.device import Device, DeviceKind
from jupyter_paddle_gpu.placement.kubernetes.pod import CONTAINER
from jupyter_paddle_gpu.placement.kubernetes.pods import Known
from jupyter_paddle_gpu.placement.kubernetes.reasons import Reason, Sign, explain
from jupyter_paddle_gpu.placement.kubernetes.times import epoch_s

_AS_EVER = ("ContainerCreating", "PodInitializing", "Completed")  # what every container goes through
_OVER = ("Succeeded", "Failed")


def scheduled(pod: Mapping[str, Any]) -> bool:
    """Whether a node was chosen: the devices are ours."""
    return bool(pod.get("spec", {}).get("nodeName"))


def ended(known: Known) -> bool:
    """Whether nothing of the Pod runs any more, or will."""
    return known.deleted or known.pod.get("status", {}).get("phase") in _OVER or exit_code(known.pod) is not None


def leaving(known: Known) -> bool:
    """Whether the Pod has ended, or is about to."""
    return ended(known) or "deletionTimestamp" in known.pod.get("metadata", {})


def refused_by_node(pod: Mapping[str, Any]) -> bool:
    """Whether the node that was chosen did not take the Pod after all."""
    said = str(pod.get("status", {}).get("reason", ""))
    return said == "UnexpectedAdmissionError" or said.startswith("OutOf")


def runs(pod: Mapping[str, Any]) -> bool:
    """Whether the agent's process runs."""
    containers = pod.get("status", {}).get("containerStatuses") or ()
    return any(container.get("name") == CONTAINER and "running" in container["state"] for container in containers)


def address(pod: Mapping[str, Any]) -> str:
    """Return the Pod's IP; empty where it has none yet."""
    return str(pod.get("status", {}).get("podIP", ""))


def exit_code(pod: Mapping[str, Any]) -> int | None:
    """Return the agent's exit code; None where it runs, never ran, or nobody knows."""
    for container in pod.get("status", {}).get("containerStatuses") or ():
        if container.get("name") == CONTAINER and (terminated := container.get("state", {}).get("terminated")):
            return int(terminated["exitCode"])
    return None


def ended_s(pod: Mapping[str, Any]) -> float | None:
    """Return when the Pod ended, in seconds of the epoch; None where it has not, or nobody knows."""
    if pod.get("status", {}).get("phase") not in _OVER:
        return None
    for container in pod["status"].get("containerStatuses") or ():
        if text := (container.get("state", {}).get("terminated") or {}).get("finishedAt"):
            return epoch_s(text)
    return None


def devices(pod: Mapping[str, Any]) -> tuple[Device, ...]:
    """Return the accelerators that the Pod holds, named by node and resource: which ones they are, its agent sees."""
    node = pod.get("spec", {}).get("nodeName", "")
    found = []
    for container in pod.get("spec", {}).get("containers") or ():
        for resource, count in container.get("resources", {}).get("limits", {}).items():
            if "/" in resource:
                kind = DeviceKind.MIG if "/mig-" in resource else DeviceKind.GPU
                found += [Device(f"{node}/{resource}#{number}", kind, resource) for number in range(int(count))]
    return tuple(found)


def signs(pod: Mapping[str, Any]) -> list[Sign]:
    """Return what the Pod says about why it waits or has failed, the most telling first."""
    status = pod.get("status", {})
    found = [_sign(status)]
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for kind in ("waiting", "terminated"):
        found += [_sign(container.get("state", {}).get(kind) or {}) for container in containers]
    conditions = [c for c in status.get("conditions") or () if c["type"] == "PodScheduled" and c["status"] == "False"]
    found += map(_sign, conditions)
    return [sign for sign in found if (sign.reason or sign.message) and sign.reason not in _AS_EVER]


def reason(pod: Mapping[str, Any]) -> Reason | None:
    """Return why it waits or has failed; None where the Pod itself says nothing of that."""
    return explain(signs(pod))


def _sign(said: Mapping[str, Any]) -> Sign:
    return Sign(said.get("reason", ""), said.get("message", ""))
