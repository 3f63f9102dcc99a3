"""`python3 -m tests.benchmarks [NAME …] [--json]`: measure and print. The exit code is 1 when a bound is missed."""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks import eviction, loading, messages, protection, sight, snapshots, watch
from tests.benchmarks.table import as_json, as_table

BENCHMARKS = {
    "protection": protection.measure,
    "eviction": eviction.measure,
    "messages": messages.measure,
    "loading": loading.measure,
    "snapshots": snapshots.measure,
    "sight": sight.measure,
    "watch": watch.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    figures = [figure for name in args.names or BENCHMARKS for figure in BENCHMARKS[name]()]
    print(as_json(figures) if args.json else as_table(figures))
    return int(not all(figure.holds for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
