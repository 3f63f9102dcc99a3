"""save, restore, snapshots, keep, drill: the training's state."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from jupyter_paddle_gpu.checkpoint import managing
from jupyter_paddle_gpu.checkpoint.words import age, what
from jupyter_paddle_gpu.core.display import Facts, Shown
from jupyter_paddle_gpu.core.errors import NotKept
from jupyter_paddle_gpu.core.units import format_duration, format_size
from jupyter_paddle_gpu.kernel import guard
from jupyter_paddle_gpu.kernel.commands.command import Command, Namespace
from jupyter_paddle_gpu.kernel.commands.watch import tail
from jupyter_paddle_gpu.kernel.parser import nearest
from jupyter_paddle_gpu.kernel.runtime import runtime


def save(args: argparse.Namespace, variables: Namespace) -> Shown:
    snapshot = guard.save()
    rows = [
        ("size", f"{format_size(snapshot.nbytes)} in {format_duration(snapshot.seconds)}"),
        ("path", str(snapshot.path)),
    ]
    return Facts(f"Saved: {what(snapshot)}", rows, [f"not exact: {text}" for text in snapshot.inexact])


def restore(args: argparse.Namespace, variables: Namespace) -> Shown:
    snapshot = guard.restore(args.snapshot, args.partial)
    rows = [("from", f"{snapshot.path.name}, {age(snapshot)} old, {snapshot.cause.value}")]
    title = f"Restored{' in part' if args.partial else ''}: {what(snapshot)}"
    return Facts(title, rows, [f"not exact: {text}" for text in snapshot.inexact])


def snapshots(args: argparse.Namespace, variables: Namespace) -> Shown:
    return managing.act(runtime().protection.store, args.action, args.snapshot, args.to)


def _add_snapshots_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=managing.ACTIONS, help="what to do (default: list)"
    )
    parser.add_argument("snapshot", nargs="?", help="a snapshot's name or step (default: the newest; verify: all)")
    parser.add_argument("--to", metavar="PATH", help="export: where to, without the endings .pdparams and .pdopt")


def _snapshots_words(given: Sequence[str], variables: Namespace) -> list[str]:
    return list(managing.ACTIONS) if not given else _snapshot_names(given[1:], variables)


def keep(args: argparse.Namespace, variables: Namespace) -> Shown:
    if args.drop:
        _drop(args.names)
    elif args.names:
        if missing := [name for name in args.names if name not in variables]:
            fault = f"There is no variable {missing[0]}.{nearest(missing[0], _worth_keeping(variables))}"
            raise NotKept(fault, "Keep it once it exists.")
        guard.keep(**{name: variables[name] for name in args.names})
    kept = guard.status().kept
    return Facts("Kept in every snapshot: " + (", ".join(kept) or "nothing; name variables to add them"))


def _worth_keeping(variables: Namespace) -> list[str]:
    return [name for name, value in variables.items() if not name.startswith("_") and not callable(value)]


def _drop(names: list[str]) -> None:
    kept = _droppable()
    what = f"These are: {', '.join(kept)}." if kept else "Nothing is."
    if not names:
        raise NotKept("--drop needs the names of what is to be kept no longer", what)
    if unknown := [name for name in names if name not in kept]:
        raise NotKept(f"{unknown[0]} is not kept.{nearest(unknown[0], kept)}", what)
    runtime().training.kept.forget(*names)


def _droppable() -> list[str]:
    kept = runtime().training.kept
    return [*kept, *kept.waiting]


def _keep_words(given: Sequence[str], variables: Namespace) -> list[str]:
    return _droppable() if "--drop" in given else list(variables)


def _add_keep_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="variables to keep; none: list what is kept")
    parser.add_argument("--drop", action="store_true", help="keep these no longer")


def drill(args: argparse.Namespace, variables: Namespace) -> Shown:
    report = guard.drill()
    equal = "bit for bit" if not report.differences else f"DIFFERENT: {', '.join(report.differences)}"
    step = "no position" if report.step is None else f"step {report.step}"
    rows = [
        ("saved", f"{step}, {format_size(report.nbytes)} in {format_duration(report.save_s)}"),
        ("read back", f"{format_duration(report.load_s)}, {equal}"),
        ("budget", f"{format_duration(report.save_s)} of {format_duration(report.grace_s)}"),
    ]
    warnings = [f"would not come back exactly: {text}" for text in report.inexact]
    if not report.fits:
        warnings.append("The save does not fit the grace: ask for more with %paddle_gpu request --grace.")
    return Facts("An eviction, only played", rows, warnings)


def _snapshot_names(given: Sequence[str], variables: Namespace) -> list[str]:
    return [] if given else [snapshot.path.name for snapshot in guard.snapshots()]


def _add_restore_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a snapshot's name or step (default: the newest good one)"
    parser.add_argument("snapshot", nargs="?", metavar="SNAPSHOT", help=what)
    parser.add_argument("--partial", action="store_true", help="load what fits another model, and say what does not")


COMMANDS = (
    Command("save", "save the training now", save),
    Command(
        "restore",
        "restore the newest good snapshot",
        restore,
        _add_restore_arguments,
        _snapshot_names,
        after=tail.show,
    ),
    Command(
        "snapshots",
        "list this notebook's snapshots; show, verify, pin, unpin, delete, export one",
        snapshots,
        _add_snapshots_arguments,
        _snapshots_words,
    ),
    Command(
        "keep",
        "name variables that belong to the training",
        keep,
        _add_keep_arguments,
        _keep_words,
    ),
    Command("drill", "play an eviction: save, read back, compare", drill),
)
