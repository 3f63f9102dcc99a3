"""Sets up a checkout: a virtual environment of its own. Standard library only: it runs before all else."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

OLDEST = (3, 10)
_MARKER = "installed-from"  # in the environment: what it was installed from


class SetUpError(Exception):
    """The environment cannot be made; the text says what to do."""


def ensure(root: Path, environment: Path, pins: tuple[str, ...] = ()) -> Path:
    """Return the Python of ``environment``, made and filled with the project at ``root`` unless it is up to date.

    The project is installed in editable form, with its kernel and its server extension. ``pins`` are further
    requirements, such as ``paddlepaddle==2.6.*``. Raises SetUpError.
    """
    if sys.version_info < OLDEST:
        raise SetUpError(f"Python {sys.version.split()[0]} is too old: run this with Python 3.10 or newer.")
    extras = (paddle_extra(), "demo", "test")
    python = environment / "bin" / "python"
    wanted = _fingerprint(root, extras, pins)
    marker = environment / _MARKER
    if python.exists() and marker.exists() and marker.read_text() == wanted:
        return python
    if not python.exists():
        print(f"Making the virtual environment {environment} …", flush=True)
        _make(environment)
    what = ["-e", f"{root}[{','.join(extras)}]", *pins]
    print(f"Installing jupyter-paddle-gpu with {', '.join(extras + pins)} (a few minutes the first time) …", flush=True)
    done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what])
    if done.returncode:
        raise SetUpError("pip could not install the project; its message is above. Is a package index reachable?")
    marker.write_text(wanted)
    return python


def paddle_extra() -> str:
    """Return the extra that brings Paddle for this machine: ``gpu`` where NVIDIA's driver is loaded, else ``cpu``."""
    return "gpu" if Path("/proc/driver/nvidia/version").exists() else "cpu"


def _make(environment: Path) -> None:
    try:
        venv.create(environment, with_pip=True, symlinks=True)
    except (subprocess.CalledProcessError, ImportError, OSError) as error:
        shutil.rmtree(environment, ignore_errors=True)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetUpError(
            f"No virtual environment could be made ({error}).\n"
            f"On Debian and Ubuntu its part of Python is a package of its own: apt install python{version}-venv"
        ) from None


def _fingerprint(root: Path, extras: tuple[str, ...], pins: tuple[str, ...]) -> str:
    """Name what an installation depends on: metadata, the files installed beside the package, extras, pins, Python."""
    digest = hashlib.sha256(repr((os.fspath(root.resolve()), extras, pins, sys.version)).encode())
    for path in [root / "pyproject.toml", *sorted((root / "jupyter_paddle_gpu" / "share").rglob("*"))]:
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
