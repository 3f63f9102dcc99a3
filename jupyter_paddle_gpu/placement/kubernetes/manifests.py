"""What an administrator makes in the cluster once: the rights of the servers, the classes of the tiers."""

from __future__ import annotations

from typing import Any

from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER
from jupyter_paddle_gpu.placement.kubernetes.pod import NAME
from jupyter_paddle_gpu.placement.kubernetes.settings import KubernetesSettings

_RBAC = "rbac.authorization.k8s.io"
VERBS = {  # resource → verb → what it is for
    "pods": {
        "create": "a kernel's Pod",
        "list": "which Pods there are, once at the start and after a watch that came too late",
        "watch": "what becomes of them: nobody asks for a single one",
        "delete": "the Pod of a kernel that ended, or that nobody waits for any more",
    },
    "events": {"list": "what holds a Pod up that has its node: of its volumes only they tell"},
    "secrets": {"create": "key and variables of one Pod; they go with it, and are never read back"},
}


def role(namespace: str) -> dict[str, Any]:
    """Return the Role with every verb that is used, and no other."""
    rules = [{"apiGroups": [""], "resources": [name], "verbs": list(verbs)} for name, verbs in VERBS.items()]
    metadata = {"name": NAME, "namespace": namespace}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def role_binding(namespace: str, account: str) -> dict[str, Any]:
    """Return what gives the Role to a service account of the namespace."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": NAME, "namespace": namespace},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def priority_classes() -> list[dict[str, Any]]:
    """Return the PriorityClasses of the default ladder, of the whole cluster."""
    names = KubernetesSettings("", "").priority_classes
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": names[tier.name]},
            "value": tier.priority,
            "preemptionPolicy": "PreemptLowerPriority" if tier.preempts else "Never",
            "description": tier.description,
        }
        for tier in DEFAULT_LADDER
    ]


def network_policy(namespace: str) -> dict[str, Any]:
    """Return the policy by which only Pods of the namespace reach the kernels: their agents, and their own ports."""
    ports = [{"protocol": "TCP", "port": 1024, "endPort": 65535}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/managed-by": NAME}},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {}}], "ports": ports}],
        },
    }


def all_of(namespace: str, account: str) -> list[dict[str, Any]]:
    """Return everything, in the order in which it is to be made."""
    return [*priority_classes(), role(namespace), role_binding(namespace, account), network_policy(namespace)]
