from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_paddle_gpu.core.agentspec import SessionFiles
from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.base import Order
from jupyter_paddle_gpu.placement.kubernetes.merge import merged
from jupyter_paddle_gpu.placement.kubernetes.pod import pod, secret
from jupyter_paddle_gpu.placement.kubernetes.settings import ClaimedVolume, KubernetesSettings

SETTINGS = KubernetesSettings(namespace="team", image="paddle:3")
ENVIRONMENT = {"FLAGS_x": "s3cret", "JPY_PARENT_PID": "7", "JUPYTERHUB_API_TOKEN": "t0ken", "PATH": "/opt"}


def order(session: str = "ab12", **request: Any) -> Order:
    files = SessionFiles(Path("data"), Path("run"), session)
    return Order(session, GpuRequest(**request), files, "anna: resnet.ipynb", 300.0, ENVIRONMENT)


def test_the_request_is_what_the_scheduler_reads() -> None:
    spec = pod(order(gpus=2, memory_bytes=2**34, grace_s=20.5), SETTINGS, 1)["spec"]
    assert spec["priorityClassName"] == "paddle-gpu-notebook"
    assert spec["terminationGracePeriodSeconds"] == 21
    resources = spec["containers"][0]["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "2"
    assert resources["limits"]["memory"] == str(2**34)


def test_without_gpus_no_accelerator_is_asked_for() -> None:
    assert "nvidia.com/gpu" not in pod(order(gpus=0), SETTINGS, 1)["spec"]["containers"][0]["resources"]["limits"]


def test_it_keeps_the_rules_of_restricted_and_has_no_token() -> None:
    spec = pod(order(), SETTINGS, 1)["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all(set(volume) <= {"name", "secret", "emptyDir", "persistentVolumeClaim"} for volume in spec["volumes"])


def test_variables_travel_in_the_secret_and_the_servers_own_not_at_all() -> None:
    made = pod(order(), SETTINGS, 1)
    kept = secret(order(), SETTINGS, made | {"metadata": {**made["metadata"], "uid": "u-1"}}, "a key")
    assert "s3cret" not in json.dumps(made)
    assert set(kept["stringData"]) == {"agent.json", "agent.pem", "env.FLAGS_x"}
    assert kept["stringData"]["env.FLAGS_x"] == "s3cret"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": made["metadata"]["name"], "uid": "u-1"}
    assert kept["metadata"]["ownerReferences"] == [owner]
    reference = made["spec"]["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": kept["metadata"]["name"], "key": "env.FLAGS_x"}


def test_shared_memory_and_claims_are_mounted() -> None:
    settings = KubernetesSettings("team", "paddle:3", volumes=(ClaimedVolume("home", "home-anna", "/home/anna"),))
    spec = pod(order(), settings, 1)["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["shared-memory"]["emptyDir"] == {"medium": "Memory", "sizeLimit": str(2**30)}
    assert volumes["home"]["persistentVolumeClaim"]["claimName"] == "home-anna"
    mounted = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    assert mounted == {"/etc/paddle-gpu", "/run/paddle-gpu", "/dev/shm", "/home/anna"}


def test_a_template_adds_and_does_not_undo() -> None:
    template = {
        "metadata": {"labels": {"cost-centre": "7"}},
        "spec": {
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "restartPolicy": "Always",
            "containers": [{"name": "log", "image": "log:1"}, {"name": "kernel", "workingDir": "/w", "image": "x"}],
        },
    }
    made = pod(order(), KubernetesSettings("team", "paddle:3", template=template), 1)
    spec = made["spec"]
    assert made["metadata"]["labels"]["cost-centre"] == "7"
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert spec["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert spec["restartPolicy"] == "Never"
    assert [(c["name"], c["image"]) for c in spec["containers"]] == [("log", "log:1"), ("kernel", "paddle:3")]
    assert spec["containers"][1]["workingDir"] == "/w"


def test_merging_changes_neither_side() -> None:
    base, ours = {"a": {"b": 1}, "args": [1, 2]}, {"a": {"c": 2}, "args": [3]}
    assert merged(base, ours) == {"a": {"b": 1, "c": 2}, "args": [3]}
    assert (base, ours) == ({"a": {"b": 1}, "args": [1, 2]}, {"a": {"c": 2}, "args": [3]})


@pytest.mark.parametrize("container", [{"image": "log:1"}, "log"])
def test_a_template_with_a_nameless_container_is_refused(container: object) -> None:
    settings = KubernetesSettings("team", "paddle:3", template={"spec": {"containers": [container]}})
    with pytest.raises(RequestError, match=r"'containers'.*no 'name'"):
        pod(order(), settings, 1)


def test_a_tier_without_a_class_is_named_with_those_there_are() -> None:
    with pytest.raises(RequestError, match="notebook") as caught:
        pod(order(tier="golden"), SETTINGS, 1)
    assert "'golden'" in caught.value.fault


@pytest.mark.parametrize("session", ["A", "a_b", "é", "x" * 60])
def test_a_session_that_names_no_pod_is_refused(session: str) -> None:
    with pytest.raises(RequestError, match="no name for a Pod"):
        pod(order(session), SETTINGS, 1)
