"""That the cluster behaves as clusters do: what our Pods meet on it is Kubernetes' own doing."""

from __future__ import annotations

import pytest

from tests.cluster.client import Namespace, Refused, pod

pytestmark = pytest.mark.timeout(900)  # the first test waits for the cluster and its image
GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
IMPORTS = "import os, paddle, jupyter_paddle_gpu; print(os.getuid(), os.environ['NVIDIA_VISIBLE_DEVICES'])"
SAVES = """
import pathlib, signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(print("told")))
while not pathlib.Path("/tmp/saved").exists() or not told:
    time.sleep(0.05)
sys.exit(143)
"""  # a notebook that is told to go, and goes when the test says that it has saved


def test_a_pod_with_a_gpu_imports_paddle_without_rights(namespace: Namespace) -> None:
    namespace.apply(pod("imports", namespace.cluster.image, IMPORTS, {GPU: 1}))
    namespace.wait_phase("imports", "Succeeded")
    user, device = namespace.call("logs", "imports").splitlines()[-1].split()
    assert user == "1000"
    assert "gpu" in device


def test_a_slice_is_a_resource_of_its_own(namespace: Namespace) -> None:
    namespace.apply(pod("slice", namespace.cluster.image, IMPORTS, {SLICE: 1}))
    namespace.wait_phase("slice", "Succeeded")
    assert "mig-1g" in namespace.call("logs", "slice")


def test_an_urgent_pod_takes_the_gpu_when_the_victim_has_saved(namespace: Namespace) -> None:
    node, count = namespace.cluster.node_with(GPU)
    low, high = f"{namespace.name}-low", f"{namespace.name}-high"
    here = {"nodeSelector": {"kubernetes.io/hostname": node}}
    namespace.apply(_priority(low, 10), _priority(high, 1000))
    notebook = pod("notebook", namespace.cluster.image, SAVES, {GPU: count}, priorityClassName=low, **here)
    notebook["spec"]["terminationGracePeriodSeconds"] = 60
    namespace.apply(notebook)
    namespace.wait_phase("notebook", "Running")
    namespace.apply(pod("urgent", namespace.cluster.image, "print(1)", {GPU: count}, priorityClassName=high, **here))
    namespace.wait_log("notebook", "told")
    victim, urgent = namespace.get("notebook"), namespace.get("urgent")
    assert _disruption(victim) == "PreemptionByScheduler"
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 60
    assert urgent["status"]["phase"] == "Pending"
    assert urgent["status"]["nominatedNodeName"] == node
    namespace.call("exec", "notebook", "--", "touch", "/tmp/saved")
    namespace.wait_phase("urgent", "Succeeded")
    namespace.wait_gone("notebook")
    namespace.cluster.call("delete", "priorityclass", low, high)


def test_an_eviction_by_the_api_says_so(namespace: Namespace) -> None:
    namespace.apply(pod("notebook", namespace.cluster.image, SAVES, {GPU: 1}))
    namespace.wait_phase("notebook", "Running")
    namespace.evict("notebook")
    namespace.wait_log("notebook", "told")
    assert _disruption(namespace.get("notebook")) == "EvictionByEvictionAPI"
    namespace.call("exec", "notebook", "--", "touch", "/tmp/saved")
    namespace.wait_gone("notebook")


def test_a_quota_refuses_the_pod_that_is_one_too_many(namespace: Namespace) -> None:
    hard = {f"requests.{GPU}": "1"}
    namespace.apply({"kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": hard}})
    with pytest.raises(Refused, match=f"exceeded quota: quota, requested: requests.{GPU}=2, used: .*, limited: .*=1"):
        namespace.apply(pod("notebook", namespace.cluster.image, SAVES, {GPU: 2}))


def test_a_pod_that_may_be_root_is_refused(namespace: Namespace) -> None:
    wanting = pod("root", namespace.cluster.image, "print(1)", {GPU: 1}, securityContext={})
    with pytest.raises(Refused, match='violates PodSecurity "restricted'):
        namespace.apply(wanting)


def _priority(name: str, value: int) -> dict[str, object]:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _disruption(victim: dict[str, object]) -> object:
    """Return the reason for which Kubernetes takes the Pod away."""
    status = victim["status"]
    assert isinstance(status, dict)
    return next(one["reason"] for one in status["conditions"] if one["type"] == "DisruptionTarget")
