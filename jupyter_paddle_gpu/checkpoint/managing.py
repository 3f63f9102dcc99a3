"""What people do with snapshots, in a notebook and on the command line: one function for each action.

Each takes a store, the name or step of a snapshot (None: the newest, where the action allows it), and returns what is
shown. All raise SnapshotNotFound with those there are.
"""

from __future__ import annotations

import time
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import retention
from jupyter_paddle_gpu.checkpoint.progress import progress
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.checkpoint.words import age, what
from jupyter_paddle_gpu.core.display import Facts, Shown, Table
from jupyter_paddle_gpu.core.errors import PaddleMissing, SnapshotCorrupt, SnapshotError, SnapshotNotFound
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.core.units import format_duration, format_size
from jupyter_paddle_gpu.language import word

HEADER = ("name", "position", "size", "age", "cause", "comes back")


ACTIONS = ("list", "show", "verify", "pin", "unpin", "delete", "export")


def act(store: Store, action: str, name: str | None, target: str | None) -> Shown:
    """Do one of ``ACTIONS``; ``target`` is where an export goes (None: the snapshot's name, here)."""
    simple = {"show": show, "verify": verify, "pin": pin, "unpin": unpin, "delete": delete}
    if action in simple:
        return simple[action](store, name)
    return export(store, name, target) if action == "export" else overview(store)


def overview(store: Store) -> Shown:
    """List the snapshots, newest first."""
    snapshots = store.list()
    title = f"Snapshots in {store.directory}"
    if snapshots:
        limit = "" if store.quota_bytes is None else f" of {format_size(store.quota_bytes)}"
        title += f", {format_size(retention.taken(store.held()))}{limit} on the disk"
    return Table(title, HEADER, [row(snapshot) for snapshot in snapshots], "None yet; %paddle_gpu save makes one.")


def row(snapshot: Snapshot) -> tuple[str, ...]:
    """Return a snapshot's line below ``HEADER``."""
    return (
        snapshot.path.name + (" (pinned)" if snapshot.pinned else ""),
        what(snapshot),
        format_size(snapshot.nbytes),
        f"{age(snapshot)} ago",
        word(snapshot.cause.value),
        word("exact") if not snapshot.inexact else "; ".join(snapshot.inexact),
    )


def show(store: Store, name: str | None) -> Shown:
    """Show what a snapshot holds, without reading the tensors."""
    snapshot = _chosen(store, name)
    found = store.contents(snapshot)
    rows = [
        ("position", what(snapshot)),
        ("made", f"{age(snapshot)} ago in {format_duration(snapshot.seconds)}, {snapshot.cause.value}"),
        ("size", format_size(snapshot.nbytes)),
        ("stays", "pinned" if snapshot.pinned else "while it is among the newest"),
        *([("ranks", str(snapshot.ranks))] if snapshot.ranks > 1 else []),
        ("Paddle", str(found.structure.get("paddle", "no training in it"))),
    ]
    rows += [("optimizer", str(part["kind"])) for part in found.optimizers()]
    for file in found.files.values():
        rows += [
            (name, f"{entry.dtype} {list(entry.shape)}, {format_size(entry.nbytes)}")
            for name, entry in file.tensors.items()
        ]
    return Facts(str(snapshot.path), rows, [f"not exact: {text}" for text in snapshot.inexact])


def verify(store: Store, name: str | None) -> Shown:
    """Read every byte of a snapshot, or of all. Raises SnapshotCorrupt that names each file and fault."""
    snapshots = store.list() if name is None else (store.find(name),)
    rows, broken = [], []
    for snapshot in snapshots:
        begun_s = time.perf_counter()
        try:
            with progress("verified", snapshot.nbytes) as tell:
                store.verify(snapshot, tell)
        except SnapshotCorrupt as error:
            broken.append(error.fault)
            continue
        except SnapshotNotFound:
            continue  # removed meanwhile
        seconds = time.perf_counter() - begun_s
        rows.append((snapshot.path.name, f"whole; {format_size(snapshot.nbytes)} in {format_duration(seconds)}"))
    if broken:
        good = f"Good: {', '.join(name for name, _ in rows)}." if rows else "None is good."
        raise SnapshotCorrupt("; ".join(broken), good)
    return Facts(f"Snapshots in {store.directory}" if rows else f"No snapshot in {store.directory}", rows)


def pin(store: Store, name: str | None) -> Shown:
    """Keep a snapshot whatever comes after it."""
    snapshot = _chosen(store, name)
    store.pin(snapshot)
    return Facts(f"Pinned: {snapshot.path.name} stays until it is unpinned or deleted")


def unpin(store: Store, name: str | None) -> Shown:
    """Let a snapshot go when newer ones come."""
    snapshot = _chosen(store, name)
    store.pin(snapshot, pinned=False)
    return Facts(f"Unpinned: {snapshot.path.name} goes when newer ones come")


def delete(store: Store, name: str | None) -> Shown:
    """Remove a snapshot. Raises SnapshotError for one that is pinned, or none that is named."""
    if name is None:
        raise SnapshotError("Which snapshot is to be deleted?", f"There are: {_names(store)}.")
    snapshot = store.find(name)
    if snapshot.pinned:
        raise SnapshotError(f"{snapshot.path.name} is pinned", "Unpin it first.")
    store.delete(snapshot)
    return Facts(f"Deleted: {snapshot.path.name}; left: {_names(store)}")


def export(store: Store, name: str | None, target: str | None) -> Shown:
    """Write a snapshot's networks and optimizers as files that plain Paddle loads; see capture.export.

    ``target`` is their path without the endings. Raises PaddleMissing beside what capture.export does.
    """
    try:
        from jupyter_paddle_gpu.checkpoint.capture.export import export as write
    except ImportError:
        raise PaddleMissing("An export needs PaddlePaddle, which is not installed here", "Install it.") from None

    snapshot = _chosen(store, name)
    with progress("read", snapshot.nbytes) as tell:
        _, state = store.load(snapshot, tell)
    files = write(state, Path(target or snapshot.path.name))
    return Facts(f"Exported: {what(snapshot)}", [(file.name, format_size(file.stat().st_size)) for file in files])


def _chosen(store: Store, name: str | None) -> Snapshot:
    if name is not None:
        return store.find(name)
    if not (snapshots := store.list()):
        raise SnapshotNotFound(f"There is no snapshot in {store.directory}", "Save one first: %paddle_gpu save.")
    return snapshots[0]


def _names(store: Store) -> str:
    return ", ".join(snapshot.path.name for snapshot in store.list()) or "none"
