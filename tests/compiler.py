"""The C compiler that builds the stand-in for the driver: the machine's, or one that pip brings without root.

Standard library only: `python3 -m tests` asks before anything is installed.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

FROM_PIP = "ziglang"  # a C compiler as a wheel of 100 MB
HOW = f"Install one (apt install gcc), or without root: pip install {FROM_PIP}"


def command() -> list[str] | None:
    """Return the command that compiles C here; None where there is none."""
    for name in ("cc", "gcc", "clang"):
        if (path := shutil.which(name)) is not None:
            return [path]
    return [sys.executable, "-m", FROM_PIP, "cc"] if importlib.util.find_spec(FROM_PIP) is not None else None


def ensure(python: Path) -> None:
    """See that the tests that run with ``python`` find a compiler; say so where none can be had."""
    asked = subprocess.run([python, "-c", "import sys; from tests import compiler; sys.exit(not compiler.command())"])
    if asked.returncode == 0:
        return
    print(f"There is no C compiler: {FROM_PIP} is installed, which builds the driver's stand-in …", flush=True)
    if subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", FROM_PIP]).returncode:
        print(f"It could not be installed. {HOW}. Tests of GPUs are left out until then.", flush=True)
