"""How this process looks after its sessions."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir, jupyter_runtime_dir

from jupyter_paddle_gpu.checkpoint.where import ENV_SNAPSHOTS
from jupyter_paddle_gpu.core.agentspec import SessionFiles
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.language import ENGLISH, ENV_LANGUAGE, language

# A process that is no Jupyter server has no successor: its kernels save and end soon after it.
LEASE_OF_PLAIN_CLIENTS_S = 5.0
_LONGEST_SOCKET_PATH = 107


@dataclass(frozen=True)
class Settings:
    """``data`` and ``runtime`` are this user's directories; ``lease_s`` is how long a kernel outlives its server;
    ``default_request`` fills what a kernelspec leaves open; ``snapshots`` is the root that kernels save under (None:
    theirs); ``adoptable`` says whether a later server may take over the sessions of this process."""

    data: Path
    runtime: Path
    lease_s: float = LEASE_OF_PLAIN_CLIENTS_S
    default_request: GpuRequest = field(default_factory=GpuRequest)
    snapshots: Path | None = None
    adoptable: bool = False

    @classmethod
    def of_user(cls) -> Settings:
        """Return the settings of a process that nobody has configured: notebook tools, scripts."""
        return cls(Path(jupyter_data_dir()) / "paddle-gpu", _runtime_directory())

    def files(self, session: str) -> SessionFiles:
        """Return the file names of a session."""
        return SessionFiles(self.data, self.runtime, session)

    def environment(self) -> dict[str, str]:
        """Return what every kernel of this process gets to know."""
        snapshots = {} if self.snapshots is None else {ENV_SNAPSHOTS: str(self.snapshots)}
        spoken = {} if language() == ENGLISH else {ENV_LANGUAGE: language()}
        return {**spoken, **snapshots}


def _runtime_directory() -> Path:
    """Return where sockets go: Jupyter's runtime directory, or a short one where its path is too long for a socket."""
    directory = Path(jupyter_runtime_dir()) / "paddle-gpu"
    if len(os.fsencode(directory)) + len("/12345678.sock") <= _LONGEST_SOCKET_PATH:
        return directory
    return Path(tempfile.gettempdir()) / f"paddle-gpu-{os.getuid()}"
