"""Sets up a checkout: a virtual environment of its own. Standard library only: it runs before all else."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

OLDEST, NEWEST = (3, 10), (3, 13)  # for newer ones Paddle has no builds
DRIVER = Path("/proc/driver/nvidia/version")
OLDEST_NODE = (20, 19)  # that builds the sidebar
LAB_EXTENSION = Path("jupyter_paddle_gpu", "labextension", "package.json")
PADDLE_INDEX = "https://www.paddlepaddle.org.cn/packages/stable/cu126/"  # PyPI's newest GPU build is 2.6
_MARKER = "installed-from"  # in the environment: what it was installed from


class SetUpError(Exception):
    """The environment cannot be made; the text says what to do."""


def ensure(root: Path, environment: Path, pins: tuple[str, ...] = ()) -> Path:
    """Return the Python of ``environment``, made and filled with the project at ``root`` unless it is up to date.

    The project is installed in editable form, with its kernel and its server extension. ``pins`` are further
    requirements, such as ``paddlepaddle==2.6.*``: with them Paddle is the CPU build. Otherwise it is the GPU build
    where NVIDIA's driver is loaded and Paddle's own index can be reached. Raises SetUpError.
    """
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        raise SetUpError(f"This is Python {sys.version.split()[0]}: run it with Python 3.10, 3.11, 3.12 or 3.13.")
    gpu = DRIVER.exists() and not pins
    extras = ("demo", "test") if gpu else ("cpu", "demo", "test")
    extras = extras if finds_node() else (*extras, "node")
    python = environment / "bin" / "python"
    wanted = _fingerprint(root, extras, pins)
    marker = environment / _MARKER
    if python.exists() and marker.exists() and marker.read_text() == wanted:
        return python
    if not python.exists():
        print(f"Making the virtual environment {environment} …", flush=True)
        _make(environment)
    print(f"Installing jupyter-paddle-gpu with {', '.join(extras + pins)} (a few minutes the first time) …", flush=True)
    if gpu and not _pip(python, "--index-url", PADDLE_INDEX, "paddlepaddle-gpu>=3"):
        print(
            "No GPU build of Paddle could be installed: the CPU build is taken, Paddle will not use the GPU.",
            flush=True,
        )
        extras = ("cpu", *extras)
    if not _pip(python, "-e", f"{root}[{','.join(extras)}]", *pins):
        raise SetUpError("pip could not install the project; its message is above. Is a package index reachable?")
    if not (root / LAB_EXTENSION).exists():
        print("The sidebar could not be built: npm's registry was not reached, perhaps. The rest works.", flush=True)
    marker.write_text(wanted)
    return python


def finds_node() -> bool:
    """Whether a Node.js that builds the sidebar is on the PATH."""
    node = shutil.which("node")
    if node is None:
        return False
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    numbers = said.removeprefix("v").split(".")[:2]
    return all(part.isdecimal() for part in numbers) and tuple(map(int, numbers)) >= OLDEST_NODE


def _pip(python: Path, *what: str) -> bool:
    """Install, and return whether it worked; pip says the rest."""
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    return subprocess.run(command).returncode == 0


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
    """Name what an installation depends on: metadata, the files installed beside the package, what the sidebar is
    built from, extras, pins, Python."""
    digest = hashlib.sha256(repr((os.fspath(root.resolve()), extras, pins, sys.version)).encode())
    sources = [
        root / "jupyter_paddle_gpu" / "share",
        *(root / "labextension" / part for part in ("src", "style", "schema")),
    ]
    files = [root / "pyproject.toml", *sorted((root / "labextension").glob("*"))]
    for path in [*files, *(path for source in sources for path in sorted(source.rglob("*")))]:
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
