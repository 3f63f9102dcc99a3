"""Where snapshots lie, and how many may: what the environment says."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.core.units import parse_size

ENV_SNAPSHOTS = "JUPYTER_PADDLE_GPU_SNAPSHOTS"  # the root of all snapshot directories, instead of Jupyter's data dir
ENV_KEEP = "JUPYTER_PADDLE_GPU_SNAPSHOT_KEEP"  # how many of the newest stay
ENV_QUOTA = "JUPYTER_PADDLE_GPU_SNAPSHOT_QUOTA"  # what the snapshots of one notebook may take, such as 20Gi
KEEP = 3
_SLUG_BYTES = 80  # well under the 255 bytes that a file name may have


@dataclass(frozen=True)
class Limits:
    """``keep`` is how many of the newest snapshots stay; ``quota_bytes`` what all of one directory may take (None: as
    much as the disk has). ``faults`` says what the environment asks for in vain."""

    keep: int = KEEP
    quota_bytes: int | None = None
    faults: tuple[str, ...] = ()


def limits(environ: Mapping[str, str] = os.environ) -> Limits:
    """Read the limits. A wrong one counts as not given: no save may fail by it."""
    keep, quota, faults = KEEP, None, []
    if text := environ.get(ENV_KEEP):
        if text.isdecimal() and int(text) >= 1:
            keep = int(text)
        else:
            faults.append(f"{ENV_KEEP} is {text!r}, not a number from 1 on: {KEEP} are kept")
    if text := environ.get(ENV_QUOTA):
        try:
            quota = parse_size(text)
        except RequestError:
            faults.append(f"{ENV_QUOTA} is {text!r}, not a size such as 20Gi: there is no quota")
    return Limits(keep, quota, tuple(faults))


def snapshot_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory above all snapshot directories of this user, as a process with this environment sees it."""
    if root := environ.get(ENV_SNAPSHOTS):
        return Path(root)
    from jupyter_core.paths import jupyter_data_dir  # a terminal that never saves does not pay for it

    return Path(jupyter_data_dir()) / "paddle-gpu" / "snapshots"


def directory_of(notebook: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of a notebook's snapshots: readable, and another one for its namesake in another folder."""
    return snapshot_root(environ) / f"{slug(notebook.stem)}-{_short_hash(notebook)}"


def directory_of_session(session: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of a session that has no notebook."""
    return snapshot_root(environ) / f"session-{slug(session)}"


def directory_of_folder(folder: Path) -> Path:
    """Return the directory of what runs in a working directory without notebook and session."""
    return snapshot_root() / f"{slug(folder.name)}-{_short_hash(folder)}"


def slug(name: str) -> str:
    """Return ``name`` as part of a file name, in any script: ``训练 1`` becomes ``训练-1``."""
    text = re.sub(r"[^\w.-]+", "-", name).strip(".-")
    return text.encode()[:_SLUG_BYTES].decode(errors="ignore") or "unnamed"


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
