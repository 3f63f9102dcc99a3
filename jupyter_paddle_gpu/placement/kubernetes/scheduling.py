"""What the scheduler says of the nodes, in words for people who own none."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^0/(\d+) nodes are available: ")
_TAIL = re.compile(r"\.? (?:preemption|no new claims to deallocate)\b.*$", re.DOTALL)
_CLAUSE = re.compile(r"(\d+) (.+?)(?=, \d+ [A-Za-z]|$)")
_SAYINGS = (  # what stands on so many nodes → how people say it
    (r"Insufficient (\S+)", r"too little \1 free"),
    (r"node\(s\) had untolerated taint.*?\{([^:}]+).*", r"closed by the taint \1"),
    (r"node\(s\) had untolerated taint\(s\)", "closed by a taint"),
    (r"node\(s\) were unschedulable", "closed for new Pods"),
    (r"node\(s\) didn't match Pod's node affinity/selector", "not of the kind asked for"),
    (r"node\(s\) had volume node affinity conflict", "out of reach of the volume"),
    (r"node\(s\) didn't find available persistent volumes to bind", "without a volume for the claim"),
    (r"Too many pods", "full of Pods"),
)
_PASSES = re.compile(r"Insufficient |Too many pods")  # frees itself when somebody else ends


def scheduling_in_words(message: str) -> str | None:
    """Return ``no room on any of 5 nodes: 2 × too little nvidia.com/gpu free, …``; None where it is not of that form.

    A clause that is not known stands there as the scheduler wrote it.
    """
    if (head := _HEAD.match(message)) is None:
        return None
    if not (clauses := _clauses(message[head.end() :])):
        return None
    return f"no room on any of {head[1]} nodes: " + ", ".join(f"{count} × {_say(text)}" for count, text in clauses)


def may_pass(message: str) -> bool:
    """Return whether some node lacks nothing but what others hold now."""
    head = _HEAD.match(message)
    return head is not None and any(_PASSES.match(text) for _, text in _clauses(message[head.end() :]))


def _clauses(text: str) -> list[tuple[int, str]]:
    body = _TAIL.sub("", text).rstrip(". ")
    return [(int(count), clause.strip()) for count, clause in _CLAUSE.findall(body)]


def _say(clause: str) -> str:
    for pattern, words in _SAYINGS:
        if (match := re.fullmatch(pattern, clause)) is not None:
            return match.expand(words)
    return clause
