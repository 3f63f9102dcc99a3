"""The Pod of a session and its Secret, as plain mappings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.core.agentspec import AgentSpec, Listen
from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.placement.base import Order
from jupyter_paddle_gpu.placement.kubernetes.merge import merged
from jupyter_paddle_gpu.placement.kubernetes.settings import KubernetesSettings

CONTAINER = "kernel"
SPEC_DIRECTORY = "/etc/paddle-gpu"
SPEC_FILE, KEY_FILE = "agent.json", "agent.pem"
RUN_DIRECTORY = "/run/paddle-gpu"  # empty at first: the agent's socket, the kernel's log and connection file
AGENT_PORT = 8472  # below those that the system gives out, from which a kernel's are
NAME = "jupyter-paddle-gpu"
LABEL_SESSION = "paddle-gpu.jupyter.org/session"
ANNOTATION_LABEL = "paddle-gpu.jupyter.org/label"
LABEL_QUEUE = "kueue.x-k8s.io/queue-name"


def pod_name(session: str, attempt: int) -> str:
    """Return the name of a session's Pod; a return is a new attempt, since the old name may not be free yet.

    Raises RequestError where that is no name in Kubernetes.
    """
    name = f"paddle-gpu-{session}-{attempt}"
    if len(name) > 63 or not session.isascii() or not session.replace("-", "").isalnum() or session != session.lower():
        raise RequestError(f"{name!r} is no name for a Pod", "A session is named by small letters, digits and dashes.")
    return name


def labels(session: str) -> dict[str, str]:
    """Return what everything of a session carries: it is found by these, and nothing else is."""
    return {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": NAME, LABEL_SESSION: session}


def agent_spec(order: Order) -> AgentSpec:
    """Return what the agent of a Pod is started with. It finds its devices there, and sees no others."""
    directory = Path(RUN_DIRECTORY, "session")
    return AgentSpec(
        session=order.session,
        request=order.request,
        devices=(),
        socket=directory / "agent.sock",
        kernel_log=directory / "kernel.log",
        lease_s=order.lease_s,
        listen=Listen(AGENT_PORT, Path(SPEC_DIRECTORY, KEY_FILE)),
    )


def secret(order: Order, settings: KubernetesSettings, owner: Mapping[str, Any], key_pem: str) -> dict[str, Any]:
    """Return the Secret of the Pod ``owner``, with whose end it goes: the agent's spec and key, and the kernel's
    variables, since no Pod shows them."""
    variables = {_key(name): value for name, value in variables_of(order.env, settings).items()}
    metadata = owner["metadata"]
    spec = json.dumps(to_plain(agent_spec(order)))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": metadata["name"],
            "namespace": settings.namespace,
            "labels": labels(order.session),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]},
            ],
        },
        "type": "Opaque",
        "stringData": {SPEC_FILE: spec, KEY_FILE: key_pem, **variables},
    }


def pod(order: Order, settings: KubernetesSettings, attempt: int) -> dict[str, Any]:
    """Return the Pod for an order, merged into the administrator's template. Raises RequestError.

    It passes Pod Security "restricted", carries no token of the API, and lives once: a return is another Pod.
    """
    name = pod_name(order.session, attempt)
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": settings.namespace,
        "labels": labels(order.session) | ({LABEL_QUEUE: settings.queue} if settings.queue else {}),
        "annotations": {ANNOTATION_LABEL: order.label},
    }
    spec: dict[str, Any] = {
        "priorityClassName": settings.priority_class(order.request.tier),
        "terminationGracePeriodSeconds": math.ceil(order.request.grace_s),
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": settings.user_id,
            "runAsGroup": settings.user_id,
            "fsGroup": settings.user_id,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(order, settings, name)],
        "volumes": _volumes(settings, name),
    }
    return merged(settings.template, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def _container(order: Order, settings: KubernetesSettings, secret_name: str) -> dict[str, Any]:
    mounts = [
        {"name": "agent-spec", "mountPath": SPEC_DIRECTORY, "readOnly": True},
        {"name": "agent-run", "mountPath": RUN_DIRECTORY},
        {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108  # for the workers of a DataLoader
    ]
    mounts += [{"name": v.name, "mountPath": v.path, "readOnly": v.read_only} for v in settings.volumes]
    return {
        "name": CONTAINER,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": ["python3", "-m", "jupyter_paddle_gpu.agent", f"{SPEC_DIRECTORY}/{SPEC_FILE}"],
        "env": [
            {"name": name, "valueFrom": {"secretKeyRef": {"name": secret_name, "key": _key(name)}}}
            for name in variables_of(order.env, settings)
        ],
        "resources": _resources(order, settings),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _resources(order: Order, settings: KubernetesSettings) -> dict[str, dict[str, str]]:
    limits = {"ephemeral-storage": settings.ephemeral_storage} if settings.ephemeral_storage else {}
    if order.request.memory_bytes is not None:
        limits["memory"] = str(order.request.memory_bytes)
    if order.request.gpus:
        limits[settings.resource] = str(order.request.gpus)
    return {"requests": {"cpu": settings.cpu, **limits}, "limits": limits}


def _volumes(settings: KubernetesSettings, secret_name: str) -> list[dict[str, Any]]:
    shared = {"medium": "Memory", "sizeLimit": str(settings.shared_memory_bytes)}
    spec_only = {
        "secretName": secret_name,
        "defaultMode": 0o440,
        "items": [{"key": name, "path": name} for name in (SPEC_FILE, KEY_FILE)],
    }
    volumes: list[dict[str, Any]] = [
        {"name": "agent-spec", "secret": spec_only},
        {"name": "agent-run", "emptyDir": {}},
        {"name": "shared-memory", "emptyDir": shared},
    ]
    for volume in settings.volumes:
        claim = {"claimName": volume.claim, "readOnly": volume.read_only}
        volumes.append({"name": volume.name, "persistentVolumeClaim": claim})
    return volumes


def variables_of(env: Mapping[str, str], settings: KubernetesSettings) -> dict[str, str]:
    """Return what of a kernel's environment may reach its Pod."""
    return {
        name: value
        for name, value in sorted(env.items())
        if any(fnmatchcase(name, pattern) for pattern in settings.environment)
    }


def _key(name: str) -> str:
    return f"env.{name}"
