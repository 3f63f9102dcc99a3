"""The layers of the Paddle image, uncompressed tar files: Debian with Python, Paddle, this project.

Each is made once and lies in the cache under what it was made from; only the project's is made anew every time.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cluster.places import CACHE, HERE, ClusterError

SUITE, PYTHON = "bookworm", "3.11"
PACKAGES = "python3,python-is-python3,libgomp1,libstdc++6,ca-certificates"
LIBRARIES = f"usr/local/lib/python{PYTHON}/dist-packages"  # on Debian's sys.path
USER, HOME = 1000, "/home/notebook"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "any")


def prepare() -> None:
    """Make all that is kept."""
    pause()
    debian()
    paddle()


def pause() -> Path:
    """Return the layer of the sandbox image."""
    source = HERE / "pause" / "pause.c"
    target = _cached("pause", source.read_text())
    if not target.exists():
        with tempfile.TemporaryDirectory() as folder:
            _run("gcc", "-static", "-Os", "-o", f"{folder}/pause", source)
            _pack(Path(folder), target, "pause")
    return target


def debian() -> Path:
    """Return a Debian with Python and an unprivileged user (a minute the first time)."""
    target = _cached("debian", SUITE, PACKAGES, str(USER), HOME)
    if not target.exists():
        account = f'echo "notebook:x:{USER}:{USER}::{HOME}:/bin/sh" >> "$1/etc/passwd"'
        home = f'install -d -o {USER} -g {USER} "$1{HOME}"'
        hooks = [f"--customize-hook={hook}" for hook in (account, home)]
        made = target.with_suffix(".new.tar")
        _run("mmdebstrap", "--quiet", "--variant=essential", f"--include={PACKAGES}", *hooks, SUITE, made)
        made.rename(target)
    return target


def paddle() -> Path:
    """Return what the project needs, with Paddle's CPU build (minutes the first time, gigabytes)."""
    wanted = sorted((*_requirements(), "setuptools"))  # Paddle 3 imports it, and does not say so
    target = _cached("paddle", debian().name, *wanted)
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            _run("tar", "-C", folder, "-xf", debian())
            _install(Path(folder), *wanted)
            compiling = ["python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", f"/{LIBRARIES}"]
            subprocess.run(["chroot", folder, *compiling], stdout=subprocess.DEVNULL)  # files for other Pythons fail
            _pack(Path(folder), target, LIBRARIES, "usr/local/bin")
    return target


def project(root: Path, folder: Path) -> Path:
    """Return, in this empty folder, the wheel of the checkout at ``root``, installed (seconds)."""
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, root)
    _install(folder / "root", "--no-deps", str(next(folder.glob("*.whl"))))
    _pack(folder / "root", folder / "project.tar", "usr")
    return folder / "project.tar"


def _requirements() -> list[str]:
    """Return what the installed project requires, with the extra that brings Paddle."""
    found = []
    for requirement in importlib.metadata.requires("jupyter-paddle-gpu") or ():
        name, _, marker = requirement.partition(";")
        if not marker or re.search(r"extra == ['\"]cpu['\"]", marker):
            found.append(name.strip())
    return found


def _install(root: Path, *what: str) -> None:
    """Install for the image's Python, whatever Python runs this, with programs and data where Debian looks."""
    libraries = root / LIBRARIES
    platforms = [f"--platform={name}" for name in PLATFORMS]
    options = [*platforms, f"--python-version={PYTHON}", "--only-binary=:all:", "--no-compile", "--quiet"]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    _run(*pip, *options, "--target", libraries, *what)
    for name in ("bin", "share", "etc"):
        if (libraries / name).exists():
            shutil.copytree(libraries / name, root / "usr/local" / name, dirs_exist_ok=True)
            shutil.rmtree(libraries / name)
    for program in (root / "usr/local/bin").glob("*"):
        first, _, rest = program.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            program.write_bytes(b"#!/usr/bin/python3\n" + rest)


def _cached(name: str, *made_from: str) -> Path:
    folder = CACHE / "layers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}-{hashlib.sha256(repr(made_from).encode()).hexdigest()[:12]}.tar"


def _pack(folder: Path, target: Path, *names: str) -> None:
    """Write these of the folder as a tar that is the same for the same files."""
    made = target.with_suffix(".new.tar")
    same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
    _run("tar", "-C", folder, *same, "--mode=go+rX", "-cf", made, *names)
    made.rename(target)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(f"`{Path(command[0]).name}` failed ({done.returncode}): {done.stderr[-2000:].strip()}")
