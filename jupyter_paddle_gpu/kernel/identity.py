"""Who this kernel is: its session, its notebook, and where its snapshots lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import where
from jupyter_paddle_gpu.core.environment import ENV_AGENT, ENV_SESSION

ENV_NOTEBOOK = "JPY_SESSION_NAME"  # the notebook's path, set by jupyter_server


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
        """Return the directory of this kernel's snapshots: of its notebook, else session, else working directory."""
        if self.notebook is not None:
            return where.directory_of(self.notebook)
        if self.session is not None:
            return where.directory_of_session(self.session)
        return where.directory_of_folder(cwd or Path.cwd())
