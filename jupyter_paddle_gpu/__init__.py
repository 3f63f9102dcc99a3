"""Preemptible GPU kernels for PaddlePaddle notebooks that save themselves and come back.

Jupyter and IPython call the functions here; importing this module loads nothing else.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0.dev0"


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    """Called by Jupyter Server: the extension is ``server.app``."""
    name = "jupyter_paddle_gpu.server.app"  # by name: the package itself depends on no part of it
    return [{"module": name, "app": importlib.import_module(name).PaddleGpuApp}]
