"""What a subcommand is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Namespace = Mapping[str, object]  # the user's variables


@dataclass(frozen=True)
class Command:
    """``run`` gets the parsed arguments and the user's variables, and returns what is shown. Raises PaddleGpuError.

    ``complete`` gives the words that may stand as a positional argument, from the words before it and the user's
    variables; ``values`` the words that may stand behind an option. ``after`` shows what stands
    below that.
    """

    name: str
    help: str
    run: Callable[[argparse.Namespace, Namespace], object]
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    complete: Callable[[Sequence[str], Namespace], list[str]] = lambda given, variables: []
    values: Mapping[str, Callable[[], list[str]]] = field(default_factory=dict)
    after: Callable[[], None] = lambda: None
