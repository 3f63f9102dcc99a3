"""`jupyter paddle-gpu demo`: the whole loop before your eyes: train, be evicted, come back, end bit-equal."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from jupyter_paddle_gpu.core.errors import PaddleGpuError, RequestError

NEEDS = ("paddle", "sklearn", "matplotlib", "nbformat", "jupyterlab")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="see a notebook train, be evicted and come back",
        description="Run the first notebook in a real Jupyter server, take its GPU away in the middle, and compare "
        "every loss with the same training never evicted.",
    )
    parser.add_argument("--lab", action="store_true", help="open JupyterLab on the notebook instead")
    parser.add_argument("--evictions", type=int, default=1, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="for results (default: out)")
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    if args.evictions < 0:
        raise RequestError(f"--evictions {args.evictions} is not a number of evictions", "Write 0 or more.")
    if missing := [name for name in NEEDS if importlib.util.find_spec(name) is None]:
        raise PaddleGpuError(
            f"The demo needs {', '.join(missing)}", "Install them, in the clone: pip install '.[cpu,demo]'"
        )
    from jupyter_paddle_gpu.admin.demo import lab, story  # what they need is not always installed

    args.out.mkdir(parents=True, exist_ok=True)
    return lab.open_lab(args.out.resolve()) if args.lab else story.tell(args.out.resolve(), args.evictions)
