"""Where the sessions of a process run: on this machine, unless whoever runs the server names a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.placement.base import Placement


def this_machine() -> Placement:
    """Return the placement on this machine, by the book that all its programs use."""
    from jupyter_paddle_gpu.placement.local.placement import LocalPlacement
    from jupyter_paddle_gpu.placement.local.where import default_book

    return LocalPlacement(default_book())


def by_name(name: str, config: Mapping[str, object]) -> Placement:
    """Return the placement ``local`` or ``kubernetes``; ``config`` has the fields of KubernetesSettings.

    Raises RequestError for another name, or a field that is not understood.
    """
    if name == "local":
        return this_machine()
    if name == "kubernetes":
        try:
            from jupyter_paddle_gpu.placement.kubernetes.placement import KubernetesPlacement
        except ImportError as error:
            raise RequestError(
                f"The placement kubernetes lacks a library: {error}",
                'Run: pip install "jupyter-paddle-gpu[kubernetes]"',
            ) from None
        from jupyter_paddle_gpu.placement.kubernetes.settings import KubernetesSettings

        return KubernetesPlacement(KubernetesSettings.from_config(config))
    raise RequestError(f"There is no placement {name!r}", "Choose local or kubernetes.")
