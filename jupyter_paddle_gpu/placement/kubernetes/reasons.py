"""Why a Pod waits or fails, in one sentence and a next step: a table over what Kubernetes and Kueue write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from jupyter_paddle_gpu.core.errors import PlacementError
from jupyter_paddle_gpu.placement.kubernetes.scheduling import may_pass, scheduling_in_words


@dataclass(frozen=True)
class Sign:
    """A ``reason`` and its ``message`` as they stand in an event, a condition, a container's state or a refusal."""

    reason: str
    message: str = ""


@dataclass(frozen=True)
class Reason:
    """``fault`` and ``next_step`` to read, ``raw`` as it was written. ``passes``: waiting alone may help; ``moves``: it
    is no hindrance, only slow; ``known``: it was understood, not only repeated."""

    fault: str
    next_step: str
    raw: str
    passes: bool = False
    known: bool = True
    moves: bool = False

    @property
    def lasts(self) -> bool:
        """Whether it is known to stay as it is."""
        return self.known and not self.passes

    def error(self) -> PlacementError:
        """Return it as an error, with what was written below."""
        return PlacementError(self.fault, f"{self.next_step}\n  {self.raw}" if self.known else self.next_step)

    def told(self) -> str:
        """Return the sentence with its next step, and below it what was written."""
        written = f"\n  {self.raw}" if self.known and self.raw != self.fault else ""
        return f"{self.fault}. {self.next_step}{written}"


@dataclass(frozen=True)
class _Row:
    """``reason`` and ``message`` are searched for; groups of ``message`` fill ``fault``."""

    reason: str
    message: str
    fault: str
    next_step: str
    passes: bool = False
    moves: bool = False


_ASK_LESS = "Ask for less, or wait until others have ended."
_ASK_ADMIN = "Ask whoever runs the cluster."
_TABLE = (
    _Row("", r"PriorityClass\S* with name (\S+) was found|no PriorityClass with name (\S+)",
         "The cluster has no PriorityClass {0}", "Choose another tier, or have the class made."),
    _Row("", r"exceeded quota: ([^,]+), requested: (\S+), used: (\S+), limited: (\S+)",
         "The namespace's quota {0} is reached: {1} asked for, {2} used of {3}", _ASK_LESS, passes=True),
    _Row("", r"failed quota: ([^:]+): must specify (.+)",
         "The namespace's quota {0} wants a Pod to say {1}",
         "Say memory with --memory; the rest belongs into the administrator's template."),
    _Row("", r"((?:max|min)imum \S+ usage per \S+ is .+)",
         "The namespace's LimitRange forbids it: {0}", "Ask for an amount between its limits."),
    _Row("", r"violates PodSecurity \"([^\"]+)\": (.+)",
         "The namespace's Pod Security {0} forbids this Pod: {1}", "Change the template of the Pod."),
    _Row("", r"failed calling webhook \"([^\"]+)\"",
         "The cluster's admission {0} does not answer", _ASK_ADMIN, passes=True),
    _Row("", r"admission webhook \"([^\"]+)\" denied the request:? ?(.*)",
         "The cluster's admission {0} refuses it: {1}", _ASK_ADMIN),
    _Row("", r"ValidatingAdmissionPolicy '([^']+)'.* denied request: (.*)",
         "The cluster's policy {0} refuses it: {1}", _ASK_ADMIN),
    _Row("", r"error looking up service account \S+: serviceaccount \"([^\"]+)\" not found",
         "The namespace has no service account {0}", "Have it made, or name another one in the template."),
    _Row("Unauthorized", "", "The cluster does not accept this server's credentials: they may have expired",
         "Sign in again, or give the server a kubeconfig that works; it goes on by itself.", passes=True),
    _Row("NotFound", r"namespaces \"([^\"]+)\" not found",
         "There is no namespace {0}", "Have it made, or name another one."),
    _Row("Invalid", r"is invalid: (.+)", "The cluster finds the Pod invalid: {0}", "Correct the template of the Pod."),
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
    _Row("FailedMount", r"(configmap|secret) \"([^\"]+)\" not found",
         "The namespace has no {0} {1}", "The Pod starts as soon as it is made.", passes=True),
    _Row("FailedMount", r"references non-existent (?:secret|config) key: (\S+)",
         "A mounted Secret or ConfigMap has no key {0}", "The Pod starts as soon as it has.", passes=True),
    _Row("FailedMount|FailedAttachVolume", r"(.*)", "A volume cannot be mounted: {0}", _ASK_ADMIN, passes=True),
    _Row("ErrImageNeverPull", r"image \"([^\"]+)\"", "The node has no image {0} and may not fetch it", _ASK_ADMIN),
    _Row("InvalidImageName", r"image (?:name |tag )?\"([^\"]+)\"", "{0} is no name of an image",
         "Correct the image's name."),
    _Row("ErrImagePull|ImagePullBackOff|Failed", r"[Ii]mage \"([^\"]+)\".*(?:unauthorized|denied|forbidden|401|403)",
         "The registry refuses the image {0}", "Check its name and the imagePullSecrets."),
    _Row("ErrImagePull|ImagePullBackOff|Failed", r"[Ii]mage \"([^\"]+)\".*(?:not found|unknown)",
         "There is no image {0}", "Correct the image's name or tag."),
    _Row("ErrImagePull|ImagePullBackOff", r"^(?:.*?[Ii]mage \"([^\"]+)\")?",
         "The image {0} cannot be fetched", "Check that the node reaches the registry.", passes=True),
    _Row("", r"exec: \"([^\"]+)\": executable file not found", "The image has no program {0}",
         "Take an image with Python and PaddlePaddle."),
    _Row("", r"No module named '?(\w[\w.]*)", "The image's Python has no {0}",
         "Take an image with PaddlePaddle and jupyter-paddle-gpu."),
    _Row("CreateContainerConfigError", r"(configmap|secret) \"([^\"]+)\" not found",
         "The namespace has no {0} {1}", "The Pod starts as soon as it is made.", passes=True),
    _Row("CreateContainerConfigError", r"(.*)", "The container lacks something: {0}", _ASK_ADMIN, passes=True),
    _Row("CreateContainerError|RunContainerError|StartError|ContainerCannotRun", r"(.*)",
         "The container cannot be started: {0}", "Correct the image or the template of the Pod.", passes=True),
    _Row("FailedCreatePodSandBox", r"(.*)", "The node cannot make the Pod: {0}", _ASK_ADMIN, passes=True),
    _Row("Pulling", r"image \"([^\"]+)\"", "The node fetches the image {0}", "It starts after that.",
         passes=True, moves=True),
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
            return Reason(row.fault.format(*groups), row.next_step, _raw(sign), row.passes, moves=row.moves)
    if (words := scheduling_in_words(sign.message)) is None:
        return None
    passes = may_pass(sign.message)
    step = _ASK_LESS if passes else "No node fits it as it is: change the request or its template."
    return Reason(f"There is {words}", step, _raw(sign), passes)


def _raw(sign: Sign) -> str:
    return ": ".join(filter(None, (sign.reason, sign.message)))
