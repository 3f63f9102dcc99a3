"""`jupyter paddle-gpu snapshots`: look after the snapshots of a notebook or script."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from jupyter_paddle_gpu.checkpoint import managing, where
from jupyter_paddle_gpu.checkpoint.retention import taken
from jupyter_paddle_gpu.checkpoint.store import open_store
from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.display import Table
from jupyter_paddle_gpu.core.errors import RequestError, SnapshotNotFound
from jupyter_paddle_gpu.core.units import format_size


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("snapshots", help="list, show, verify, pin, unpin, delete and export snapshots")
    parser.add_argument(
        "action", nargs="?", default="list", choices=managing.ACTIONS, help="what to do (default: list)"
    )
    parser.add_argument("snapshot", nargs="?", help="a snapshot's name or step (default: the newest; verify: all)")
    parser.add_argument(
        "--of",
        type=Path,
        metavar="PATH",
        help="a notebook, or a directory of snapshots (default: all, or the only one there is)",
    )
    parser.add_argument("--to", metavar="PATH", help="export: where to, without the endings .pdparams and .pdopt")
    parser.add_argument("--json", action="store_true", help="list: one JSON object instead of a table")
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    if args.json and args.action != "list":
        raise RequestError("--json goes with list", "Leave it out.")
    if args.action == "list":
        print(_list_json(_directories(args.of)) if args.json else _list(_directories(args.of), args.of))
    else:
        print(managing.act(open_store(_only(args.of)), args.action, args.snapshot, args.to))
    return 0


def _directories(of: Path | None) -> list[Path]:
    """Return the directories that are meant. Raises SnapshotNotFound."""
    if of is not None:
        return [_directory(of)]
    root = where.snapshot_root()
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def _directory(of: Path) -> Path:
    directory = where.directory_of(of.absolute()) if of.suffix == ".ipynb" else of
    if not directory.is_dir():
        named = where.snapshot_root() / of
        if len(of.parts) == 1 and named.is_dir():  # as the list of all names it
            return named
        raise SnapshotNotFound(f"{of} has no snapshots: there is no {directory}", "Without --of all are listed.")
    return directory


def _only(of: Path | None) -> Path:
    found = _directories(of)
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found)
    if not found:
        raise SnapshotNotFound(f"There are no snapshots in {where.snapshot_root()}", "A notebook makes them.")
    raise RequestError("Whose snapshots are meant?", f"Say it with --of: a notebook, or one of {names}.")


def _list(directories: list[Path], of: Path | None) -> object:
    if of is not None:
        return managing.overview(open_store(directories[0]))
    rows = []
    for directory in directories:
        store = open_store(directory)
        snapshots = store.list()
        rows.append(
            (
                directory.name,
                str(len(snapshots)),
                format_size(taken(store.held())),
                ", ".join(managing.row(snapshots[0])[1:4:2]) if snapshots else "none",
            )
        )
    return Table(
        f"Snapshots in {where.snapshot_root()}", ("of", "how many", "on the disk", "newest"), rows, "None yet."
    )


def _list_json(directories: list[Path]) -> str:
    plain = {str(directory): to_plain(open_store(directory).list()) for directory in directories}
    return json.dumps({"snapshots": plain}, ensure_ascii=False)
