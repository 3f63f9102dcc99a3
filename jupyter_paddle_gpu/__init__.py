"""Preemptible GPU kernels for PaddlePaddle notebooks that save themselves and come back.

Jupyter and IPython call the functions here; importing this module loads nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jupyter_paddle_gpu.kernel import guard

__version__ = "0.1.0.dev0"
__all__ = ["guard", "load_ipython_extension", "unload_ipython_extension"]


def __getattr__(name: str) -> Any:
    """Import ``guard`` when somebody asks for it, and not what lies beside the user's script under one of our names."""
    if name != "guard":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    shadow = importlib.import_module("jupyter_paddle_gpu.kernel.shadow")
    with shadow.without_users_directory():
        return importlib.import_module("jupyter_paddle_gpu.kernel.guard")


def load_ipython_extension(ipython: Any) -> None:
    """Called by ``%load_ext jupyter_paddle_gpu``."""
    importlib.import_module("jupyter_paddle_gpu.kernel.extension").load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Called by ``%unload_ext jupyter_paddle_gpu`` and ``%reload_ext``."""
    importlib.import_module("jupyter_paddle_gpu.kernel.extension").unload(ipython)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Called by Jupyter's tools: where the built sidebar is, and its name."""
    return [{"src": "labextension", "dest": "jupyter-paddle-gpu"}]


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    """Called by Jupyter Server: the extension is ``server.app``."""
    name = "jupyter_paddle_gpu.server.app"  # by name: the package itself depends on no part of it
    return [{"module": name, "app": importlib.import_module(name).PaddleGpuApp}]
