"""Preemptible GPU kernels for PaddlePaddle notebooks that save themselves and come back.

Jupyter and IPython call the functions here; importing this module loads nothing else.
"""

from __future__ import annotations

__version__ = "0.1.0.dev0"
