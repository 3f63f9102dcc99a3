"""Where things lie outside the checkout, and what a machine needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "jupyter-paddle-gpu-tests"
PAUSE = "localhost/pause:1"
PACKAGES = {  # each program, and the Debian package that brings it
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "ip": "iproute2",
    "unshare": "util-linux",
    "openssl": "openssl",
    "gcc": "gcc",
    "/usr/include/signal.h": "libc6-dev",
    "mmdebstrap": "mmdebstrap",
}


@dataclass(frozen=True)
class Ground:
    """What one cluster has for itself on this machine: a folder, ports, addresses and bridges. Two don't meet."""

    state: Path
    number: int

    @property
    def kubeconfig(self) -> Path:
        return self.state / "admin.kubeconfig"

    @property
    def nodes(self) -> list[Path]:
        """The folders of the nodes that there are or were; each is named as its node."""
        return sorted(self.state.glob("node-*"))

    def port(self, usual: int) -> int:
        return usual + self.number

    def subnet(self, index: int) -> str:
        return f"10.{244 + self.number}.{index}.0/24"

    def address(self, index: int) -> str:
        """Return a node's address: its bridge's, for a kubelet refuses a loopback one."""
        return f"10.{244 + self.number}.{index}.1"

    def bridge(self, index: int) -> str:
        return f"cni{100 * self.number + index}"


BY_HAND = Ground(CACHE / "state", 0)
OF_TESTS = Ground(CACHE / "tests", 1)


class ClusterError(Exception):
    """The cluster cannot be had; the message names the fault and the next step."""


def lacking() -> list[str]:
    """Return what this machine lacks for a cluster of its own, a clause each; empty when it can run one."""
    lacks = [] if os.geteuid() == 0 else ["root"]
    if packages := _packages():
        lacks.append(f"the Debian packages {' '.join(packages)} (python3 -m tests.cluster prepare --install)")
    return lacks


def check_machine() -> None:
    """Raise ClusterError naming all that is lacking."""
    if lacks := lacking():
        raise ClusterError(
            f"This machine cannot run the test cluster; it lacks {', and '.join(lacks)}.\n"
            "Or set KUBECONFIG to a cluster that runs."
        )


def install() -> None:
    """Install the Debian packages that are lacking; raises ClusterError where that fails."""
    if packages := _packages():
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            if subprocess.run(["apt-get", "--quiet", *command], env=quiet, stdout=sys.stderr).returncode:
                raise ClusterError(f"apt-get {command[0]} failed; its message is above. It needs root and Debian.")


def _packages() -> list[str]:
    return sorted({package for program, package in PACKAGES.items() if not _there(program)})


def _there(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else shutil.which(program) is not None
