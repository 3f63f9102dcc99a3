"""A stand-in for NVIDIA's driver library, in C, which the real nvidia-ml-py loads as it loads the driver's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import compiler

LIBRARY = "libnvidia-ml.so.1"  # the name that nvidia-ml-py loads


class Machine:
    """A machine whose GPUs the library in ``directory`` plays; what is written is what the next call finds."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {"LD_LIBRARY_PATH": str(directory)}

    def is_now(self, *lines: str) -> None:
        """Let the machine be what ``lines`` say from the next call on; ``nvml.c`` says how they read."""
        draft = self.directory / "machine.draft"
        draft.write_text("".join(line + "\n" for line in lines))
        os.replace(draft, self.directory / "machine")  # noqa: PTH105  # a reader sees the old file or the new one

    def loses_its_driver(self) -> None:
        """Take the library away: what starts from now on finds no driver."""
        (self.directory / LIBRARY).unlink()


def play(directory: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> Machine:
    """Build the library, and let what this test starts find the machine of these lines with it."""
    build(directory)
    machine = Machine(directory)
    machine.is_now(*lines)
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    return machine


def build(directory: Path) -> Path:
    """Compile the library into ``directory`` and return its path.

    Skips where there is no C compiler, and says how to have one; fails there where CI is to see that all is tested.
    """
    if (command := compiler.command()) is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up(f"There is no C compiler for the driver's stand-in. {compiler.HOW}")
    library = directory / LIBRARY
    source = Path(__file__).with_name("nvml.c")
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, *flags, f"-Wl,-soname,{LIBRARY}", "-o", str(library), str(source), "-ldl"], check=True)
    return library
