"""Moving a notebook from a kernel that is not ours to one that is: its own Jupyter server is asked to do it."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.core.errors import PlacementError

BY_HAND = "Choose the kernel “Paddle GPU” by hand: menu Kernel, Change Kernel…"
TIMEOUT_S = 10.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy would get the server's token


def move_notebook(request: Mapping[str, object]) -> str:
    """Ask the notebook's server to move it to a kernel "Paddle GPU" with this request; return the server's answer.

    This kernel is ended by the server when the other one is there. Raises PlacementError that says what to do by hand.
    """
    kernel = _own_kernel_id()
    if kernel is None:
        raise PlacementError(
            "This is no notebook's kernel, so there is nothing to move",
            "Start a kernel “Paddle GPU”: jupyter console --kernel paddle-gpu.",
        )
    refusals: list[PlacementError] = []
    for server in _servers():
        try:
            answer = _post(server, f"paddle-gpu/move/{kernel}", dict(request))
        except urllib.error.HTTPError as error:
            refusals.append(_refusal(error))
        except (OSError, ValueError):
            continue  # a server that is gone left its file behind
        else:
            return str(answer["detail"])
    if not refusals:
        raise PlacementError("No Jupyter server of yours answers from here", BY_HAND)
    raise refusals[0]


def _own_kernel_id() -> str | None:
    """Return the id that the server knows this kernel by: it stands in the name of the connection file."""
    from ipykernel.connect import get_connection_file
    from traitlets.config import MultipleInstanceError

    try:
        name = Path(get_connection_file()).name
    except (RuntimeError, MultipleInstanceError):  # the second: IPython in a terminal
        return None
    match = re.fullmatch(r"kernel-([0-9a-f-]{36})\.json", name)
    return match[1] if match else None


def _servers() -> Iterator[Mapping[str, Any]]:
    """Yield what is known of this user's running servers, the one that started this kernel first."""
    from jupyter_server.serverapp import list_running_servers

    parent = os.environ.get("JPY_PARENT_PID", str(os.getppid()))
    servers = list(list_running_servers())
    yield from sorted(servers, key=lambda server: str(server["pid"]) != parent)


def _post(server: Mapping[str, Any], path: str, body: Mapping[str, object]) -> Any:
    token = server.get("token") or os.environ.get("JUPYTERHUB_API_TOKEN", "")
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"token {token}"} if token else {})
    call = urllib.request.Request(server["url"] + path, json.dumps(body).encode(), headers, method="POST")  # noqa: S310  # the address is our own server's, from its runtime file
    with _DIRECT.open(call, timeout=TIMEOUT_S) as response:
        return json.load(response)


def _refusal(error: urllib.error.HTTPError) -> PlacementError:
    """Return what the server's answer means; its own next step where it names one."""
    next_step = BY_HAND
    try:
        answer = json.load(error)
        fault, next_step = str(answer["message"]), str(answer.get("next_step") or BY_HAND)
    except (ValueError, KeyError, TypeError):
        fault = f"it answered {error.code} {error.reason}"
        if error.code == 404:
            fault = "the server extension jupyter_paddle_gpu is not enabled there"
    if error.code == 403:
        fault = "it wants a password that this kernel does not know"
    return PlacementError(f"The Jupyter server did not move the notebook: {fault}", next_step)
