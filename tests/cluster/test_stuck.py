"""A Pod that does not come to its kernel: its user reads why, and it does not hang for ever."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_paddle_gpu.core.errors import PaddleGpuError, PlacementError
from tests.cluster import asking
from tests.cluster.client import Cluster
from tests.cluster.namespace import Namespace, eventually
from tests.cluster.notebook import nothing_left, served, team, wait_for_state

pytestmark = pytest.mark.timeout(900)  # the first test waits for the cluster and its image
LIMIT_S = 4.0
NOWHERE = "127.0.0.1:9/none/such:1"  # a registry that does not answer, on any node


def with_volume(source: dict[str, Any]) -> dict[str, Any]:
    """Return a template whose Pod mounts one volume more."""
    container = {"name": "kernel", "volumeMounts": [{"name": "extra", "mountPath": "/extra"}]}
    return {"spec": {"volumes": [{"name": "extra", **source}], "containers": [container]}}


def in_environment(source: dict[str, Any]) -> dict[str, Any]:
    """Return a template whose kernel has one variable more."""
    return {"spec": {"containers": [{"name": "kernel", "env": [{"name": "EXTRA", "valueFrom": source}]}]}}


async def refusal(namespace: Namespace, home: Path, **changed: object) -> PaddleGpuError:
    """Return the error with which a Pod that is made so ends."""
    order = asking.order(home)
    async with asking.placement(namespace, stuck_limit_s=LIMIT_S, **changed) as placement:
        with pytest.raises(PlacementError) as raised:
            await placement.start(order, await (await placement.request(order)).granted())
        await nothing_left(namespace)
    return raised.value


@pytest.mark.parametrize(
    ("changed", "fault", "written"),
    [
        pytest.param(
            {"image": NOWHERE, "image_pull_policy": "Always"},
            f"The image {NOWHERE} cannot be fetched",
            "dial tcp 127.0.0.1:9: connect: connection refused",
            id="an image that no registry has",
        ),
        pytest.param(
            {"image": "Not/An:Image"}, "Not/An:Image is no name of an image", "reference", id="no image's name"
        ),
        pytest.param(
            {"image": "localhost/pause:1"},
            "The image has no program python3",
            "executable file not found",
            id="an image without Python",
        ),
        pytest.param(
            {"template": with_volume({"configMap": {"name": "nosuch"}})},
            "The namespace has no configmap nosuch",
            "MountVolume.SetUp failed",
            id="a ConfigMap that is missing",
        ),
        pytest.param(
            {"template": with_volume({"secret": {"secretName": "nosuch"}})},
            "The namespace has no secret nosuch",
            "MountVolume.SetUp failed",
            id="a Secret that is missing",
        ),
        pytest.param(
            {"template": in_environment({"secretKeyRef": {"name": "nosuch", "key": "a"}})},
            "The namespace has no secret nosuch",
            "CreateContainerConfigError",
            id="a Secret of a variable that is missing",
        ),
        pytest.param(
            {"volumes": [{"name": "snapshots", "claim": "nosuch", "path": "/snapshots"}]},
            "The volume claim nosuch does not exist",
            "persistentvolumeclaim",
            id="a volume claim that is missing",
        ),
        pytest.param(
            {"template": {"spec": {"nodeSelector": {"accelerator": "none-such"}}}},
            "not of the kind asked for",
            "didn't match Pod's node affinity/selector",
            id="a node that is not there",
        ),
        pytest.param(
            {"template": {"spec": {"serviceAccountName": "nosuch"}}},
            "The namespace has no service account nosuch",
            "",
            id="an account that is missing",
        ),
    ],
)
def test_it_fails_after_the_limit_with_what_the_cluster_says(
    tmp_path: Path, cluster: Cluster, changed: dict[str, object], fault: str, written: str
) -> None:
    async def run() -> None:
        async with team(cluster) as namespace:
            error = await refusal(namespace, tmp_path, **changed)
            assert fault in error.fault
            assert written in error.next_step

    asyncio.run(run())


def test_the_last_lines_of_an_agent_that_cannot_start_are_shown(tmp_path: Path, cluster: Cluster) -> None:
    hides = {"spec": {"containers": [{"name": "kernel", "env": [{"name": "PYTHONHOME", "value": "/nowhere"}]}]}}

    async def run() -> None:
        async with team(cluster) as namespace:
            error = await refusal(namespace, tmp_path, template=hides)
            assert "No module named 'encodings'" in str(error)

    asyncio.run(run())


def test_what_was_missing_is_waited_for_and_told_meanwhile(tmp_path: Path, cluster: Cluster) -> None:
    async def run() -> None:
        order, template = asking.order(tmp_path), with_volume({"configMap": {"name": "late"}})
        async with team(cluster) as namespace, asking.placement(namespace, template=template) as placement:
            grant = await (await placement.request(order)).granted()
            starting = asyncio.ensure_future(placement.start(order, grant))

            async def told() -> bool:
                return "The namespace has no configmap late" in grant.why

            await eventually(told, "the reason is told")
            await namespace.api.request("POST", f"{namespace.path}/configmaps", {"metadata": {"name": "late"}})
            placed = await asyncio.wait_for(starting, 180)  # a kubelet looks again after a while
            await placed.close()
            assert [pod["status"]["phase"] for pod in await namespace.pods()] == ["Running"]

    asyncio.run(run())


def test_a_node_that_refuses_again_and_again_ends_it(home: Path, cluster: Cluster) -> None:
    async def run() -> None:
        async with team(cluster) as namespace:
            await namespace.take_gpu()
            namespace.template = {"spec": {"nodeName": namespace.node}}  # past the scheduler, who knows better
            async with served(home, namespace) as server:
                kernel = server.open("refused.ipynb", "paddle-gpu")["kernel"]["id"]
                await wait_for_state(server, kernel, "failed")
                told = server.ask("GET", f"paddle-gpu/sessions/{kernel}")["detail"]
                assert told.startswith("5 times in a row: The node refused it after all")
            await nothing_left(namespace)

    asyncio.run(run())
