"""Who this kernel is: its session, its notebook, and where its snapshots lie."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_paddle_gpu.core.environment import ENV_AGENT, ENV_SESSION

ENV_SNAPSHOTS = "JUPYTER_PADDLE_GPU_SNAPSHOTS"  # the root of all snapshot directories, instead of Jupyter's data dir
ENV_NOTEBOOK = "JPY_SESSION_NAME"  # the notebook's path, set by jupyter_server
_SLUG_BYTES = 80  # well under the 255 bytes that a file name may have


@dataclass(frozen=True)
class Identity:
    """``session`` and ``agent`` (its socket) are None in a kernel that is not ours; ``notebook`` is its absolute path,
    None where no server says it (``jupyter execute``, a console, a terminal)."""

    session: str | None
    agent: Path | None
    notebook: Path | None

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Identity:
        """Read what the agent and jupyter_server say in the environment."""
        agent, notebook = environ.get(ENV_AGENT), environ.get(ENV_NOTEBOOK)
        return cls(
            session=environ.get(ENV_SESSION) or None,
            agent=Path(agent) if agent else None,
            notebook=Path(os.path.abspath(notebook)) if notebook else None,  # noqa: PTH100  # keeps symbolic links
        )

    @classmethod
    def take(cls) -> Identity:
        """Read the identity and remove the agent's part from the environment.

        A kernel that this one starts as a subprocess (``!jupyter execute``) must not take itself for this session.
        """
        identity = cls.read()
        os.environ.pop(ENV_AGENT, None)
        os.environ.pop(ENV_SESSION, None)
        return identity

    def snapshot_directory(self, cwd: Path | None = None) -> Path:
        """Return the directory of this kernel's snapshots: one for each notebook, else session, else working directory.

        Readable, and different for two notebooks of one name in two folders.
        """
        if self.notebook is not None:
            return snapshot_root() / f"{slug(self.notebook.stem)}-{_short_hash(self.notebook)}"
        if self.session is not None:
            return snapshot_root() / f"session-{slug(self.session)}"
        here = cwd or Path.cwd()
        return snapshot_root() / f"{slug(here.name)}-{_short_hash(here)}"


def snapshot_root() -> Path:
    """Return the directory above all snapshot directories of this user."""
    if root := os.environ.get(ENV_SNAPSHOTS):
        return Path(root)
    from jupyter_core.paths import jupyter_data_dir  # a terminal that never saves does not pay for it

    return Path(jupyter_data_dir()) / "paddle-gpu" / "snapshots"


def slug(name: str) -> str:
    """Return ``name`` as part of a file name, in any script: ``训练 1`` becomes ``训练-1``."""
    text = re.sub(r"[^\w.-]+", "-", name).strip(".-")
    return text.encode()[:_SLUG_BYTES].decode(errors="ignore") or "unnamed"


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
