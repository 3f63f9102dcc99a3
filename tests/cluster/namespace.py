"""A namespace of the test's own: its rules, its volume, and what others start there."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from jupyter_paddle_gpu.placement.kubernetes import manifests
from jupyter_paddle_gpu.placement.kubernetes.api import Api, ApiRefused

PATIENCE_S = 60.0
ACCOUNT = "jupyter"
GPU = "nvidia.com/gpu"
_RESTRICTED = {
    "allowPrivilegeEscalation": False, "runAsNonRoot": True, "runAsUser": 1000,
    "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip


class Namespace:
    """Made by ``make``; ``remove`` ends it. ``node`` is the one with a GPU on which everything of the test runs."""

    def __init__(self, kubeconfig: Path, image: str) -> None:
        self.kubeconfig, self.image = kubeconfig, image
        self.name = f"test-{uuid.uuid4().hex[:8]}"
        self.path = f"/api/v1/namespaces/{self.name}"
        self.api = Api(kubeconfig)
        self.node = ""
        self.pull = "IfNotPresent"
        self.template: dict[str, Any] = {}  # empty: the Pods go to the node

    async def make(self, volume: Path) -> None:
        """Make the namespace, the tiers' classes, and a claim "snapshots" on the folder ``volume``."""
        nodes = (await self.api.request("GET", "/api/v1/nodes"))["items"]
        self.node = next(node["metadata"]["name"] for node in nodes if int(node["status"]["allocatable"].get(GPU, 0)))
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        await self.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.name, "labels": labels}})
        for thing in manifests.all_of(self.name, ACCOUNT):
            await self._apply(thing)
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        bound = {"claimRef": {"namespace": self.name, "name": "snapshots"}, "hostPath": {"path": str(volume)}}
        spec = {**common, **bound, "capacity": {"storage": "1Gi"}}
        await self.api.request("POST", "/api/v1/persistentvolumes", {"metadata": {"name": self.name}, "spec": spec})
        claimed = {**common, "volumeName": self.name, "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": "snapshots"}, "spec": claimed}
        await self.api.request("POST", f"{self.path}/persistentvolumeclaims", claim)
        await self.eventually_answers(f"{self.path}/serviceaccounts/default")
        self.kubeconfig = await self._account(volume.with_suffix(".kubeconfig"))

    async def _apply(self, thing: dict[str, Any]) -> None:
        kind = thing["kind"].lower()
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("s") else f"{kind}s"
        space = f"namespaces/{self.name}/" if "namespace" in thing["metadata"] else ""
        with suppress(ApiRefused):  # an earlier test has made the classes
            await self.api.request("POST", f"/apis/{thing['apiVersion']}/{space}{plural}", thing)

    async def _account(self, file: Path) -> Path:
        """Make the Jupyter server's account and write its kubeconfig: it may do what the Role says, and no more."""
        await self.api.request("POST", f"{self.path}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
        made = await self.api.request("POST", f"{self.path}/serviceaccounts/{ACCOUNT}/token", {"spec": {}})
        given = yaml.safe_load(self.kubeconfig.read_text())
        used = next(c["context"] for c in given["contexts"] if c["name"] == given["current-context"])
        given["users"] = [{"name": ACCOUNT, "user": {"token": made["status"]["token"]}}]
        given["contexts"] = [{"name": "test", "context": {"cluster": used["cluster"], "user": ACCOUNT}}]
        given["current-context"] = "test"
        await asyncio.to_thread(file.write_text, json.dumps(given))
        return file

    async def eventually_answers(self, path: str) -> None:
        """Wait until there is something at ``path``."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                await self.api.request("GET", path)
            except ApiRefused:
                assert time.monotonic() < end_s, f"nothing at {path}"
                await asyncio.sleep(0.05)
            else:
                return

    async def remove(self) -> None:
        with suppress(ApiRefused):
            await self.api.request("DELETE", f"/api/v1/namespaces/{self.name}")
            await self.api.request("DELETE", f"/api/v1/persistentvolumes/{self.name}")
        await self.api.close()

    def configuration(self) -> dict[str, Any]:
        """Return what an administrator writes for PaddleGpuApp.kubernetes."""
        on_node = {"spec": {"nodeSelector": {"kubernetes.io/hostname": self.node}}}
        return {
            "namespace": self.name,
            "image": self.image,
            "image_pull_policy": self.pull,
            "cpu": "100m",
            "ephemeral_storage": "",
            "working_directory": "/tmp",
            "kubeconfig": str(self.kubeconfig),
            "volumes": [{"name": "snapshots", "claim": "snapshots", "path": "/snapshots"}],
            "template": self.template or on_node,
        }

    async def pods(self) -> list[dict[str, Any]]:
        """Return all Pods of the namespace."""
        items: list[dict[str, Any]] = (await self.api.request("GET", f"{self.path}/pods"))["items"]
        return items

    async def secrets(self) -> list[str]:
        """Return the names of all Secrets of the namespace."""
        return [item["metadata"]["name"] for item in (await self.api.request("GET", f"{self.path}/secrets"))["items"]]

    async def urgent(self, name: str, work: str = "pass") -> None:
        """Start an urgent Pod of somebody else that needs the node's GPU and runs the Python code ``work``."""
        container = {
            "name": "job", "image": self.image, "imagePullPolicy": "IfNotPresent",
            "command": ["python3", "-c", work],
            "resources": {"limits": {GPU: "1"}}, "securityContext": _RESTRICTED,
        }  # fmt: skip
        spec = {
            "containers": [container], "priorityClassName": "paddle-gpu-urgent", "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": self.node}, "terminationGracePeriodSeconds": 1,
        }  # fmt: skip
        await self.api.request("POST", f"{self.path}/pods", {"metadata": {"name": name}, "spec": spec})

    async def run_urgent(self, name: str) -> None:
        """Start an urgent Pod and wait until it has run."""
        await self.urgent(name)
        await self._until(name, "Succeeded")

    async def take_gpu(self) -> None:
        """Start an urgent Pod and wait until it holds the GPU, for as long as the namespace is there."""
        await self.urgent("urgent-holder", "import time; time.sleep(600)")
        await self._until("urgent-holder", "Running")

    async def _until(self, name: str, phase: str) -> None:
        async def there() -> bool:
            return await self.phase(name) == phase

        await eventually(there, f"{name} is {phase}")

    async def evict(self, pod: str) -> None:
        """Ask for a Pod's eviction, as a drain of its node does."""
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.name}}
        await self.api.request("POST", f"{self.path}/pods/{pod}/eviction", eviction)

    async def phase(self, name: str) -> str:
        """Return how far a Pod is."""
        return str((await self.api.request("GET", f"{self.path}/pods/{name}"))["status"]["phase"])


async def eventually(true: Callable[[], Any], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait until the coroutine of ``true()`` returns so; fail with ``what``."""
    end_s = time.monotonic() + within_s
    while not await true():
        assert time.monotonic() < end_s, f"not within {within_s:g} s: {what}"
        await asyncio.sleep(0.1)
