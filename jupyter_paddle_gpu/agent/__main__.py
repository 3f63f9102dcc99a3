"""``python -m jupyter_paddle_gpu.agent SPEC.json``: one session's agent."""

from __future__ import annotations

import os
import signal
import sys

from jupyter_paddle_gpu.core.wire import EXIT_EVICTED


def main(arguments: list[str]) -> int:
    """Run the agent of the spec file named in ``arguments`` to its end; return the exit code.

    143: evicted. 0: stopped. The other codes come with a sentence on stderr: os.EX_USAGE, called wrongly;
    os.EX_CONFIG, the spec cannot be used; os.EX_CANTCREAT, the socket or the lease cannot be had.
    """
    # As a container's first process Python would ignore SIGTERM until we say otherwise.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(EXIT_EVICTED))
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m jupyter_paddle_gpu.agent SPEC.json\n")
        return os.EX_USAGE
    from jupyter_paddle_gpu.agent import start  # not before the handler above

    return start.start(arguments[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
