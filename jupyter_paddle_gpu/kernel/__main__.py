"""``python -m jupyter_paddle_gpu.kernel -f CONNECTION_FILE``: ipykernel with our extension loaded.

Our kernelspec calls ``main`` by ``python -c``: with ``-m`` Python itself imports a ``types.py`` of the notebook's
directory before any line of ours runs.
"""

from __future__ import annotations

import os
import sys
import time

if sys.path and sys.path[0] in ("", __import__("os").getcwd()):  # a random.py beside the notebook is not Python's
    sys.path.pop(0)

from ipykernel.kernelapp import IPKernelApp  # after the working directory is out of the way

from jupyter_paddle_gpu.core.environment import ENV_AWAITED
from jupyter_paddle_gpu.kernel import extension

CONNECTED_S = 0.25  # ZMQ_RECONNECT_IVL is 0.1 s, and up to as much again by chance


class PaddleGpuKernelApp(IPKernelApp):  # type: ignore[misc]  # ipykernel is not followed
    """ipykernel's application; its configuration files apply unchanged."""

    def init_extensions(self) -> None:
        """Load ours first, not by IPython's list: a notebook's own ``%load_ext`` stays silent."""
        extension.load(self.shell, quietly=True)
        super().init_extensions()

    def start(self) -> None:
        """Answer who has waited for this kernel only when they listen, too: each socket connects by itself."""
        if os.environ.pop(ENV_AWAITED, None):
            time.sleep(CONNECTED_S)
        super().start()


def main() -> None:
    """Run the kernel to its end."""
    PaddleGpuKernelApp.launch_instance()


if __name__ == "__main__":
    main()
