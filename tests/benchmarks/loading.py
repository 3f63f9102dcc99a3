"""What `%load_ext` adds to a bare IPython, and the server extension to the start of a Jupyter server.

All modules are compiled beforehand, as an installer does it: where Python may not keep what it has compiled
(PYTHONDONTWRITEBYTECODE), a checkout would be compiled anew at each start.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.table import Figure, paired

LOAD = """
import time
from IPython.core.interactiveshell import InteractiveShell
import {warm}
shell = InteractiveShell.instance()
start = time.perf_counter()
shell.run_line_magic("load_ext", "{extension}")
print(time.perf_counter() - start)
"""
ROUNDS = 7


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        return [load_ext(environment), server_start(environment)]


def load_ext(environment: Mapping[str, str]) -> Figure:
    """The magic in a shell that has everything that ipykernel imports, against an extension of IPython's own."""
    for extension in ("jupyter_paddle_gpu", "storemagic"):
        _load_s(extension, environment)
    ours, bare = paired(
        lambda: _load_s("jupyter_paddle_gpu", environment), lambda: _load_s("storemagic", environment), ROUNDS
    )
    added_ms = 1000 * (statistics.median(ours) - statistics.median(bare))
    return Figure("%load_ext over bare IPython", added_ms, "ms", "≤ 50 ms", added_ms <= 50)


def _load_s(extension: str, environment: Mapping[str, str]) -> float:
    code = LOAD.format(warm="ipykernel.kernelapp", extension=extension)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.split()[-1])


def server_start(environment: Mapping[str, str]) -> Figure:
    """From the start of the process to the line that says where it listens."""
    _server_s(True, environment)
    ours, bare = paired(lambda: _server_s(True, environment), lambda: _server_s(False, environment), ROUNDS)
    added_ms = 1000 * (statistics.median(ours) - statistics.median(bare))
    detail = f"{1000 * statistics.median(bare):.0f} ms without"
    return Figure("server start", added_ms, "ms more", "≤ 100 ms", added_ms <= 100, detail)


def _server_s(with_ours: bool, compiled: Mapping[str, str]) -> float:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "jupyter_server", "--ServerApp.port=0", "--ServerApp.open_browser=False"]
        command.append(f"--ServerApp.jpserver_extensions=jupyter_paddle_gpu={with_ours}")
        command += ["--allow-root"] if os.geteuid() == 0 else []
        environment = {**compiled, "JUPYTER_RUNTIME_DIR": directory, "JUPYTER_PADDLE_GPU_BOOK": directory + "/book"}
        started_s = time.perf_counter()
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=Path(directory))
        assert process.stderr
        try:
            for line in process.stderr:
                if re.search(r"Jupyter Server .* is running at", line):
                    return time.perf_counter() - started_s
        finally:
            process.terminate()
            process.communicate()
    raise RuntimeError("the server did not start")
