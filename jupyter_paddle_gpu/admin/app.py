"""`jupyter paddle-gpu`: each subcommand is a module of its own beside this one."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from jupyter_paddle_gpu import __version__
from jupyter_paddle_gpu.admin import demo, doctor, manifests, ps, run, snapshots, top
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.language import translated

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells say it
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command; a subcommand's function is in ``args.call``, and in ``args.refuse`` one
    that ends with its usage and what is wrong."""
    parser = argparse.ArgumentParser(
        prog="jupyter paddle-gpu", description="Share the GPUs of a machine by priority; notebooks save themselves."
    )
    parser.add_argument("--version", action="version", version=__version__)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (run, ps, top, snapshots, doctor, manifests, demo):
        command.add_parser(subparsers)
    for subparser in subparsers.choices.values():
        subparser.set_defaults(refuse=subparser.error)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code; an error of ours is two lines on stderr and exit code 2."""
    args, unknown = build_parser().parse_known_args(argv)
    if unknown:  # argparse itself would show the usage of the whole command, which names no option
        args.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        return int(args.call(args))
    except PaddleGpuError as error:
        print(f"jupyter paddle-gpu: {translated(error.fault)}", file=sys.stderr)
        if error.next_step:
            print(f"  {translated(error.next_step)}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whom we wrote to has read enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return EXIT_BROKEN_PIPE


if __name__ == "__main__":
    sys.exit(main())
