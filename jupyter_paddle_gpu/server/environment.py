"""What of a server's environment reaches a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping

# The kernel's parent is its agent. A kernel that is told another parent ends itself.
_PARENT = "JPY_PARENT_PID"
# What lets a process act as the server or as its user at the hub: a notebook may run other people's code.
_SECRET = re.compile(r"(JUPYTER|JUPYTERHUB|JPY|CONFIGPROXY)\w*_(\w*TOKEN\w*|\w*SECRET\w*|PASSWORD|CRYPT_KEY)")


def is_secret(name: str) -> bool:
    """Whether a variable of this name is a credential of Jupyter's own."""
    return _SECRET.fullmatch(name) is not None


def without_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """Return ``env`` without the credentials of the server and of the hub."""
    return {name: value for name, value in env.items() if not is_secret(name)}


def kernel_environment(env: Mapping[str, str], guarded: bool) -> dict[str, str]:
    """Return a kernel's environment. ``guarded``: it is a session of ours, not a plain kernel that any tool started
    and that is to find what it finds elsewhere."""
    kept = without_secrets(env) if guarded else dict(env)
    kept.pop(_PARENT, None)
    return kept
