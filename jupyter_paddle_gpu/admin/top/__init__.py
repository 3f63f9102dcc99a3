"""`jupyter paddle-gpu top`: the machine's GPUs and all kernels of this account, live in a terminal."""

from __future__ import annotations

import argparse
import time

from jupyter_paddle_gpu.admin.options import add_book_option
from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.placement.local.book import Book

FIRST_LOOK_S = 0.5  # between the two looks that the use of the CPU needs
SHORTEST_S = 0.2
PLAIN_WIDTH = 200  # where no terminal says how wide it is: lines are not to be cut


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("top", help="watch GPUs, kernels and the queue, live")
    parser.add_argument("--once", action="store_true", help="show it once, as plain text where there is no terminal")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="between two looks (default: 1)")
    add_book_option(parser)
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    # What the other subcommands need not wait for.
    from rich.console import Console
    from rich.live import Live

    from jupyter_paddle_gpu.admin.top.drawing import draw
    from jupyter_paddle_gpu.admin.top.scene import Stage
    from jupyter_paddle_gpu.admin.top.servers import PATIENCE_S, running

    if not args.every >= SHORTEST_S:
        raise RequestError(f"{args.every:g} s is too short between two looks", f"Take {SHORTEST_S:g} or more.")
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    servers = running()
    with Stage(Book(args.book), servers) as stage:
        scene = stage.look()
        if args.once or not console.is_terminal:
            for server in servers:
                server.told.wait(PATIENCE_S if scene.kernels else 0)
            time.sleep(FIRST_LOOK_S)
            console.print(draw(stage.look()))
            return 0
        with Live(draw(scene), console=console, screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(args.every)
                live.update(draw(stage.look()), refresh=True)
