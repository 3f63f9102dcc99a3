"""`jupyter paddle-gpu doctor`: whether everything is in place before it is needed, and what to do where it is not."""

from __future__ import annotations

import argparse
import json

from jupyter_paddle_gpu.admin.options import add_book_option
from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.display import Table
from jupyter_paddle_gpu.core.finding import Finding, Verdict
from jupyter_paddle_gpu.language import word

EXIT_FAULT = 1
_FAULT, _WARNING = Verdict.FAULT, Verdict.WARNING


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="check that everything is in place",
        description="Check Paddle, the GPUs, the Jupyter server, the snapshots' disk and the way of SIGTERM. "
        "The exit code is 1 where something does not work.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    add_book_option(parser)
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    from jupyter_paddle_gpu.admin.doctor import checks  # what they import, no other command needs

    findings = checks.examine(args.book)
    print(json.dumps({"findings": to_plain(findings)}, ensure_ascii=False) if args.json else table(findings))
    return EXIT_FAULT if any(finding.verdict is _FAULT for finding in findings) else 0


def table(findings: list[Finding]) -> Table:
    """Return what people read; the next step stands under what it is for."""
    rows = []
    for finding in findings:
        rows.append((word(finding.verdict.value), finding.what, finding.found))
        if finding.next_step:
            rows.append(("", "", f"→ {finding.next_step}"))
    faults, warnings = (sum(finding.verdict is verdict for finding in findings) for verdict in (_FAULT, _WARNING))
    title = f"{faults} of {len(findings)} do not work" if faults else "Everything works"
    title += f", {warnings} will disappoint" if warnings else ""
    return Table(title, ("", "what", "found"), rows)
