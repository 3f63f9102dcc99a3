"""Why a Pod waits or fails, in one sentence and a next step: a table over what Kubernetes and Kueue write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from jupyter_paddle_gpu.placement.kubernetes.scheduling import may_pass, scheduling_in_words


@dataclass(frozen=True)
class Sign:
    """A ``reason`` and its ``message`` as they stand in an event, a condition, a container's state or a refusal."""

    reason: str
    message: str = ""


@dataclass(frozen=True)
class Reason:
    """``fault`` and ``next_step`` to read, ``raw`` as it was written. ``passes``: waiting alone may help; ``known``: it
    was understood, not only repeated."""

    fault: str
    next_step: str
    raw: str
    passes: bool = False
    known: bool = True


@dataclass(frozen=True)
class _Row:
    """``reason`` and ``message`` are searched for; groups of ``message`` fill ``fault``."""

    reason: str
    message: str
    fault: str
    next_step: str
    passes: bool = False


_ASK_LESS = "Ask for less, or wait until others have ended."
_ASK_ADMIN = "Ask whoever runs the cluster."
_TABLE = (
    _Row("", r"PriorityClass\S* with name (\S+) was found|no PriorityClass with name (\S+)",
         "The cluster has no PriorityClass {0}", "Choose another tier, or have the class made."),
    _Row("", r"exceeded quota: ([^,]+), requested: (\S+), used: (\S+), limited: (\S+)",
         "The namespace's quota {0} is reached: {1} asked for, {2} used of {3}", _ASK_LESS, passes=True),
    _Row("", r"violates PodSecurity \"([^\"]+)\": (.+)",
         "The namespace's Pod Security {0} forbids this Pod: {1}", "Change the template of the Pod."),
    _Row("", r"failed calling webhook \"([^\"]+)\"",
         "The cluster's admission {0} does not answer", _ASK_ADMIN, passes=True),
    _Row("", r"namespace (\S+) because it is being terminated",
         "The namespace {0} is being deleted", "Choose another namespace."),
    _Row("", r"is forbidden: User \"([^\"]+)\" cannot (\S+) resource \"([^\"]+)\"",
         "The account {0} may not {1} {2}", "Give the account that verb in its Role."),
    _Row("", r"insufficient unused quota for (\S+) in flavor (\S+?),? (\S+) more needed",
         "The queue waits for {2} more {0}: others use its quota", "It starts when they end.", passes=True),
    _Row("", r"insufficient quota for (\S+) in flavor \S+.*> maximum capacity \((\S+?)\)",
         "The queue never holds so much {0}: its whole quota is {1}", "Ask for less."),
    _Row("Inadmissible", r"LocalQueue (\S+) doesn't exist",
         "There is no queue {0}", "Have the LocalQueue made, or name another one."),
    _Row("SchedulingGated", "", "The queue has not admitted it yet", "It starts when its turn comes.", passes=True),
    _Row("", r"persistentvolumeclaim \"([^\"]+)\" not found",
         "The volume claim {0} does not exist", "Have it made, or name another one."),
    _Row("", r"unbound immediate PersistentVolumeClaims",
         "A volume claim has no volume yet", "See why with: kubectl describe pvc.", passes=True),
    _Row("FailedAttachVolume", r"Multi-Attach error for volume \"([^\"]+)\"",
         "The volume {0} is held by another node", "It comes free when the Pod there has ended.", passes=True),
    _Row("FailedMount|FailedAttachVolume", r"(.*)", "A volume cannot be mounted: {0}", _ASK_ADMIN, passes=True),
    _Row("ErrImageNeverPull", r"image \"([^\"]+)\"", "The node has no image {0} and may not fetch it", _ASK_ADMIN),
    _Row("InvalidImageName", r"image \"([^\"]+)\"", "{0} is no name of an image", "Correct the image's name."),
    _Row("ErrImagePull|ImagePullBackOff|Failed", r"[Ii]mage \"([^\"]+)\".*(?:unauthorized|denied|forbidden|401|403)",
         "The registry refuses the image {0}", "Check its name and the imagePullSecrets."),
    _Row("ErrImagePull|ImagePullBackOff|Failed", r"[Ii]mage \"([^\"]+)\".*(?:not found|unknown)",
         "There is no image {0}", "Correct the image's name or tag."),
    _Row("ErrImagePull|ImagePullBackOff", r"^(?:.*?[Ii]mage \"([^\"]+)\")?",
         "The image {0} cannot be fetched", "Check that the node reaches the registry.", passes=True),
    _Row("", r"exec: \"([^\"]+)\": executable file not found", "The image has no program {0}",
         "Take an image with Python and PaddlePaddle."),
    _Row("CreateContainerConfigError", r"(.*)", "The container lacks something: {0}", _ASK_ADMIN, passes=True),
    _Row("UnexpectedAdmissionError|OutOf.*", r"(.*)",
         "The node refused it after all: {0}", "It is tried on again as a new Pod.", passes=True),
)  # fmt: skip  # the first row that fits holds


def explain(signs: Iterable[Sign]) -> Reason | None:
    """Return the reason that the ``signs``, newest first, speak of; None where there is none.

    What is known comes before what is newer: a gate says less than the queue behind it. A sign that no row knows is
    shown as it stands.
    """
    given = [sign for sign in signs if sign.reason or sign.message]
    found = [known for sign in given if (known := _known(sign)) is not None]
    telling = [reason for reason in found if not reason.raw.startswith("SchedulingGated")]
    if telling or found:
        return (telling or found)[0]
    return Reason(_raw(given[0]), _ASK_ADMIN, _raw(given[0]), known=False) if given else None


def _known(sign: Sign) -> Reason | None:
    for row in _TABLE:
        match = re.search(row.message, sign.message, re.DOTALL)
        if match is not None and (not row.reason or re.fullmatch(row.reason, sign.reason)):
            groups = [group.rstrip(".,") for group in match.groups() if group is not None] or ["of this Pod"]
            return Reason(row.fault.format(*groups), row.next_step, _raw(sign), row.passes)
    if (words := scheduling_in_words(sign.message)) is None:
        return None
    passes = may_pass(sign.message)
    step = _ASK_LESS if passes else "No node fits it as it is: change the request or its template."
    return Reason(f"There is {words}", step, _raw(sign), passes)


def _raw(sign: Sign) -> str:
    return ": ".join(filter(None, (sign.reason, sign.message)))
