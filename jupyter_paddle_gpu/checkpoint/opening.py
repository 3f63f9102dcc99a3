"""One snapshot that is there: what people are told of it, and its state. Whatever is wrong with it is said of this
snapshot, and nothing of it is used."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import format as layout
from jupyter_paddle_gpu.checkpoint import reader
from jupyter_paddle_gpu.checkpoint.format import Broken, Manifest
from jupyter_paddle_gpu.checkpoint.ranks import elsewhere, parts
from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.checkpoint.writer import Progress
from jupyter_paddle_gpu.core.errors import SnapshotCorrupt, SnapshotNotFound
from jupyter_paddle_gpu.core.ranks import World
from jupyter_paddle_gpu.core.snapshot import Snapshot


def load_one(path: Path, world: World, progress: Progress | None, whole: bool) -> tuple[Snapshot, State]:
    """Return the snapshot in ``path`` with the verified state of ``world``'s rank; ``progress`` gets the bytes read.

    ``whole``: see that the parts of all ranks are good, so that all choose the same. Raises SnapshotCorrupt,
    SnapshotNotFound.
    """
    with readable(path):
        manifest = reader.read_manifest(path)
        mine = world.rank if manifest.ranks == world.size else 0
        state = reader.read_state(path, manifest, progress, mine)
        if whole:
            parts.read_others(path, manifest, mine)
        if manifest.ranks != world.size:
            others = [reader.read_contents(path, manifest, rank) for rank in range(1, manifest.ranks)]
            elsewhere.check_replicated(others, manifest.ranks, world.size)
            state = elsewhere.adapted(state, manifest.ranks, world.size)
        return describe(path, manifest), state


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say of the snapshot in ``path`` what goes wrong in the block. Raises SnapshotCorrupt, SnapshotNotFound."""
    try:
        yield
    except FileNotFoundError:
        raise missing(path) from None
    except Broken as error:
        if not os.path.lexists(path / layout.MANIFEST):  # another process has removed it meanwhile
            raise missing(path) from None
        raise SnapshotCorrupt(f"The snapshot {path} is broken: {error}", "Nothing of it was used.") from None


def missing(path: Path) -> SnapshotNotFound:
    """Return the error for what is no snapshot, or none any more."""
    return SnapshotNotFound(f"{path} is not a complete snapshot", "%paddle_gpu snapshots lists them.")


def describe(path: Path, manifest: Manifest) -> Snapshot:
    """Return what people are told about a snapshot."""
    return Snapshot(
        path=path,
        step=None if manifest.position is None else manifest.position.step,
        nbytes=manifest.nbytes,
        seconds=manifest.seconds,
        cause=manifest.cause,
        created_s=manifest.created_s,
        inexact=manifest.inexact,
        session=manifest.session,
        pinned=os.path.lexists(path / layout.PINNED),
        ranks=manifest.ranks,
    )
