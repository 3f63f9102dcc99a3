"""What a test says to a cluster, by kubectl."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSIONS = {"PriorityClass": "scheduling.k8s.io/v1", "Eviction": "policy/v1"}
Object = Mapping[str, Any]


class Refused(Exception):
    """The API server says no; the message is its own."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs. ``image`` is on its nodes: Paddle and this project, for a user who is not root."""

    kubeconfig: Path
    kubectl: list[str]
    image: str

    def call(self, *arguments: str, text: str | None = None) -> str:
        """Return what kubectl prints; raises Refused with what it says on stderr."""
        whole = [*self.kubectl, "--kubeconfig", str(self.kubeconfig), *arguments]
        done = subprocess.run(whole, input=text, capture_output=True, text=True)
        if done.returncode:
            raise Refused(done.stderr.strip())
        return done.stdout

    def node_with(self, resource: str) -> tuple[str, int]:
        """Return the last of the nodes that offer this resource, and how many of it."""
        nodes = json.loads(self.call("get", "nodes", "--output=json"))["items"]
        counts = {node["metadata"]["name"]: int(node["status"]["allocatable"].get(resource, 0)) for node in nodes}
        offering = [(name, count) for name, count in sorted(counts.items()) if count]
        if not offering:
            raise Refused(f"no node of this cluster offers {resource}")
        return offering[-1]


@dataclass(frozen=True)
class Namespace:
    """A namespace, for one test."""

    cluster: Cluster
    name: str

    def apply(self, *objects: Object) -> None:
        """Make these objects; raises Refused."""
        for one in objects:
            whole = {"apiVersion": VERSIONS.get(one["kind"], "v1"), **one}
            placed = () if one["kind"] in ("Namespace", "PriorityClass") else ("--namespace", self.name)
            self.cluster.call("create", *placed, "--filename=-", text=json.dumps(whole))

    def get(self, pod: str) -> dict[str, Any]:
        """Return the Pod; raises Refused where there is none."""
        got: dict[str, Any] = json.loads(self.call("get", "pod", pod, "--output=json"))
        return got

    def call(self, *arguments: str, text: str | None = None) -> str:
        return self.cluster.call("--namespace", self.name, *arguments, text=text)

    def evict(self, pod: str) -> None:
        """Ask for an eviction, as a drain does."""
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.name}}
        path = f"/api/v1/namespaces/{self.name}/pods/{pod}/eviction"
        self.cluster.call("create", "--raw", path, "--filename=-", text=json.dumps(eviction))

    def wait_phase(self, pod: str, phase: str) -> dict[str, Any]:
        """Wait until the Pod is in this phase, and return it."""
        wait_until(lambda: self.get(pod)["status"]["phase"] == phase, lambda: self._told(pod, phase))
        return self.get(pod)

    def wait_gone(self, pod: str) -> None:
        wait_until(lambda: not self.call("get", "pod", pod, "--ignore-not-found"), lambda: f"{pod} is still there")

    def wait_log(self, pod: str, text: str) -> str:
        """Wait until the Pod has printed this text, and return all that it has printed."""
        wait_until(lambda: text in self.call("logs", pod), lambda: f"{pod} has printed {self.call('logs', pod)!r}")
        return self.call("logs", pod)

    def _told(self, pod: str, phase: str) -> str:
        return f"{pod} is not {phase}:\n{json.dumps(self.get(pod)['status'], indent=1)}"


def wait_until(holds: Callable[[], bool], told: Callable[[], str], limit_s: float = 120) -> None:
    """Wait until it holds; past the limit raises TimeoutError with what is told."""
    deadline_s = time.monotonic() + limit_s
    while True:
        try:
            if holds():
                return
        except Refused:  # no log before the container has started
            if time.monotonic() > deadline_s:
                raise
        if time.monotonic() > deadline_s:
            raise TimeoutError(told())
        time.sleep(0.2)


def pod(name: str, image: str, program: str, limits: Mapping[str, int], **spec: object) -> Object:
    """Return a Pod under the restricted rules whose first process is Python with this program."""
    container = {
        "name": "kernel",
        "image": image,
        "imagePullPolicy": "IfNotPresent" if "/" in image.removeprefix("localhost/") else "Never",
        "command": ["python", "-u", "-c", program],
        "resources": {"limits": dict(limits)},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    secure = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    whole = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": secure,
        "containers": [container],
    }
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {**whole, **spec}}
