from __future__ import annotations

import pytest

from jupyter_paddle_gpu.placement.kubernetes.reasons import Sign, explain

GATED = Sign("SchedulingGated")
NO_ROOM = (
    "0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint {dedicated: db}. "
    "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
)


@pytest.mark.parametrize(
    ("sign", "fault", "passes"),
    [
        (
            Sign("FailedScheduling", NO_ROOM),
            "There is no room on any of 5 nodes: 2 × too little nvidia.com/gpu free, 3 × closed by the taint dedicated",
            True,
        ),
        (
            Sign("FailedScheduling", "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
            "There is no room on any of 2 nodes: 2 × not of the kind asked for",
            False,
        ),
        (
            Sign("Pending", "couldn't assign flavors to pod set main: insufficient unused quota for "
                 "nvidia.com/mig-1g.10gb in flavor any, 1 more needed"),
            "The queue waits for 1 more nvidia.com/mig-1g.10gb: others use its quota",
            True,
        ),
        (
            Sign("Inadmissible", "LocalQueue nosuch doesn't exist"),
            "There is no queue nosuch",
            False,
        ),
        (
            Sign("Pending", "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor "
                 "any, previously considered podsets requests (0) + current podset request (2) > maximum capacity (1)"),
            "The queue never holds so much nvidia.com/gpu: its whole quota is 1",
            False,
        ),
        (
            Sign("Forbidden", 'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'),
            "The namespace's Pod Security restricted:latest forbids this Pod: runAsNonRoot != true",
            False,
        ),
        (
            Sign("Forbidden", 'pods is forbidden: User "anna" cannot create resource "pods" in API group ""'),
            "The account anna may not create pods",
            False,
        ),
        (
            Sign("CreateContainerConfigError", 'secret "s" not found'),
            "The namespace has no secret s",
            True,
        ),
        (
            Sign("CreateContainerConfigError", "couldn't find key A in ConfigMap team/settings"),
            "The container lacks something: couldn't find key A in ConfigMap team/settings",
            True,
        ),
        (GATED, "The queue has not admitted it yet", True),
        (
            Sign("Forbidden", 'pods "x" is forbidden: no PriorityClass with name paddle-gpu-golden was found'),
            "The cluster has no PriorityClass paddle-gpu-golden",
            False,
        ),
        (
            Sign("Forbidden", 'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, '
                 "used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2"),
            "The namespace's quota gpus is reached: requests.nvidia.com/gpu=1 asked for, "
            "requests.nvidia.com/gpu=2 used of requests.nvidia.com/gpu=2",
            True,
        ),
        (
            Sign("FailedScheduling", 'persistentvolumeclaim "home" not found'),
            "The volume claim home does not exist",
            False,
        ),
        (
            Sign("ImagePullBackOff", 'Back-off pulling image "paddle:3"'),
            "The image paddle:3 cannot be fetched",
            True,
        ),
        (
            Sign("ErrImagePull", 'failed to pull image "paddle:9": docker.io/paddle:9: not found'),
            "There is no image paddle:9",
            False,
        ),
        (
            Sign("FailedAttachVolume", 'Multi-Attach error for volume "pv-7" Volume is already used'),
            "The volume pv-7 is held by another node",
            True,
        ),
        (
            Sign("Forbidden", 'pods "x" is forbidden: failed quota: mem: must specify limits.memory for: kernel'),
            "The namespace's quota mem wants a Pod to say limits.memory for: kernel",
            False,
        ),
        (
            Sign("Forbidden", 'pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi'),
            "The namespace's LimitRange forbids it: maximum memory usage per Container is 1Gi, but limit is 2Gi",
            False,
        ),
        (
            Sign("BadRequest", 'admission webhook "pods.example.org" denied the request: no GPUs on Sundays'),
            "The cluster's admission pods.example.org refuses it: no GPUs on Sundays",
            False,
        ),
        (
            Sign("Invalid", "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'all' denied "
                 "request: only our registry"),
            "The cluster's policy images refuses it: only our registry",
            False,
        ),
        (
            Sign("Invalid", 'Pod "x" is invalid: spec.containers[0].image: Required value'),
            "The cluster finds the Pod invalid: spec.containers[0].image: Required value",
            False,
        ),
        (Sign("NotFound", 'namespaces "teem" not found'), "There is no namespace teem", False),
        (Sign("Pulling", 'Pulling image "paddle:3"'), "The node fetches the image paddle:3", True),
        (
            Sign("Error", "/usr/bin/python3: No module named jupyter_paddle_gpu"),
            "The image's Python has no jupyter_paddle_gpu",
            False,
        ),
    ],
)  # fmt: skip
def test_each_reason_is_a_sentence_and_says_whether_waiting_helps(sign: Sign, fault: str, passes: bool) -> None:
    reason = explain([sign])
    assert reason is not None
    assert (reason.fault, reason.passes) == (fault, passes)
    assert reason.next_step
    assert reason.raw.startswith(sign.reason)


def test_the_queue_says_more_than_the_gate() -> None:
    reason = explain([GATED, Sign("Inadmissible", "LocalQueue nosuch doesn't exist")])
    assert reason is not None
    assert reason.fault == "There is no queue nosuch"


def test_what_nobody_knows_is_shown_as_it_stands() -> None:
    reason = explain([Sign("NewReason", "of a later Kubernetes")])
    assert reason is not None
    assert reason.fault == reason.raw == "NewReason: of a later Kubernetes"


def test_a_clause_that_is_not_known_stays_in_the_sentence() -> None:
    reason = explain([Sign("FailedScheduling", "0/1 nodes are available: 1 node(s) had a moon.")])
    assert reason is not None
    assert reason.fault == "There is no room on any of 1 nodes: 1 × node(s) had a moon"


def test_without_a_sign_there_is_no_reason() -> None:
    assert explain([]) is None
    assert explain([Sign("")]) is None
