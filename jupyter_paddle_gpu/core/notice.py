"""The eviction notice: who takes the GPU, and how long is left."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

EXIT_EVICTED = 143  # 128 + SIGTERM: what Kubernetes and shells report for a process that ended on SIGTERM


class Cause(str, Enum):
    """Why a kernel loses its GPU, or a snapshot is made. The value is what manifests and events carry."""

    PREEMPTED = "preempted"  # a request of a higher tier takes the GPU
    DRAINED = "drained"  # the Eviction API: somebody empties the node
    NODE_TAINTED = "node-tainted"  # the node does not take this Pod any more
    NODE_PRESSURE = "node-pressure"  # the node ran short of memory or disk
    NODE_SHUTDOWN = "node-shutdown"  # the node is being shut down
    NODE_LOST = "node-lost"  # the node does not answer, or is gone
    DEADLINE = "deadline"  # the Pod reached its activeDeadlineSeconds
    OUT_OF_MEMORY = "out-of-memory"  # ended by the kernel of the node, without a warning
    SIGTERM = "sigterm"  # somebody ended the agent or the process, and we know no more
    SERVER_GONE = "server-gone"  # nobody has looked after the session for longer than its lease
    SHUTDOWN = "shutdown"  # the user or the server ended the kernel
    RELEASED = "released"  # the user gave the GPU back
    CHANGED = "changed"  # the user asked for other GPUs: the kernel starts again on them
    MANUAL = "manual"  # the user asked for a snapshot
    PERIODIC = "periodic"  # made by itself while a training runs
    DRILL = "drill"  # an eviction that is only played


@dataclass(frozen=True)
class EvictionNotice:
    """What is known when the GPU must be given up.

    ``remaining_s`` is the time left when the message was sent: processes share no clock, so the receiver counts from
    its receipt. ``by`` names who takes the GPU (empty: unknown), ``position`` is the place in the queue that this
    session will have for its return (None: unknown, or it does not queue again).
    """

    cause: Cause
    remaining_s: float
    by: str = ""
    position: int | None = None
