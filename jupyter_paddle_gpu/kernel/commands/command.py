"""What a subcommand is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jupyter_paddle_gpu.kernel.display import Shown

Namespace = Mapping[str, object]  # the user's variables


@dataclass(frozen=True)
class Command:
    """``run`` gets the parsed arguments and the user's variables, and returns what is shown. Raises PaddleGpuError.

    ``complete`` gives the words that may stand as a positional argument, from the user's variables.
    """

    name: str
    help: str
    run: Callable[[argparse.Namespace, Namespace], Shown]
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    complete: Callable[[Namespace], list[str]] = lambda variables: []
