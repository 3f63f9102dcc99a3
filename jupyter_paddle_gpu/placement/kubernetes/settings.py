"""What an administrator says about the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jupyter_paddle_gpu.core.codec import from_plain
from jupyter_paddle_gpu.core.errors import RequestError, WireError
from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER


def _classes() -> dict[str, str]:
    return {tier.name: f"paddle-gpu-{tier.name}" for tier in DEFAULT_LADDER}


@dataclass(frozen=True)
class ClaimedVolume:
    """A PersistentVolumeClaim ``claim`` of the namespace, seen in the Pod at ``path``."""

    name: str
    claim: str
    path: str
    read_only: bool = False


@dataclass(frozen=True)
class KubernetesSettings:
    """Where Pods go and what they are made of.

    ``priority_classes`` has the PriorityClass of each tier; ``resource`` is the accelerator's name as nodes offer it;
    ``ephemeral_storage`` may be empty where nodes do not count it; ``queue`` is a LocalQueue of Kueue (empty: none).
    ``environment`` names the variables of an order that may reach a Pod, with ``*`` for any end: the server's own hold
    tokens and paths that mean nothing there. ``working_directory`` is the kernel's in the Pod (empty: the same path as
    on the server, where the user's volume is mounted there, too).
    ``stuck_limit_s`` is how long a Pod may be held up by what will hardly pass: an image that is not fetched, a volume.
    ``kubeconfig`` is a file (empty: what kubectl would take, or in a Pod its own account). ``template`` is a Pod
    as a mapping that ours is merged into: node selector, tolerations, affinity, runtime class, sidecars belong there.
    """

    namespace: str
    image: str
    priority_classes: Mapping[str, str] = field(default_factory=_classes)
    resource: str = "nvidia.com/gpu"
    cpu: str = "1"
    ephemeral_storage: str = "10Gi"
    shared_memory_bytes: int = 2**30
    user_id: int = 1000
    image_pull_policy: str = "IfNotPresent"
    queue: str = ""
    volumes: tuple[ClaimedVolume, ...] = ()
    environment: tuple[str, ...] = (
        "FLAGS_*", "KERNEL_*", "PADDLE_*", "LANG", "LC_*", "TZ", "JPY_SESSION_NAME", "JUPYTER_PADDLE_GPU_SNAPSHOT*",
    )  # fmt: skip
    working_directory: str = ""
    stuck_limit_s: float = 600.0
    kubeconfig: str = ""
    template: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> KubernetesSettings:
        """Read the fields as an administrator writes them. Raises RequestError that names the field."""
        try:
            return from_plain(cls, dict(config))
        except WireError as error:
            raise RequestError(
                f"The configuration of the cluster is not understood: {error.fault}",
                "It needs at least namespace and image; correct c.PaddleGpuApp.kubernetes.",
            ) from None

    def priority_class(self, tier: str) -> str:
        """Return the PriorityClass of a tier. Raises RequestError that lists the tiers there are."""
        if (name := self.priority_classes.get(tier)) is None:
            raise RequestError(
                f"This cluster has no PriorityClass for tier {tier!r}",
                f"Choose one of: {', '.join(self.priority_classes)}.",
            )
        return name
