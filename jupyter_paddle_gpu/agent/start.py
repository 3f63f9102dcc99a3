"""From a spec file to a running agent."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

from jupyter_paddle_gpu.agent.agent import Agent
from jupyter_paddle_gpu.agent.keeper import Keeper
from jupyter_paddle_gpu.agent.lease_watch import Lease
from jupyter_paddle_gpu.agent.processes import become_subreaper
from jupyter_paddle_gpu.agent.spec import read_spec
from jupyter_paddle_gpu.core.agentspec import AgentSpec
from jupyter_paddle_gpu.core.errors import PaddleGpuError, PlacementError


def start(spec_path: str) -> int:
    """Run to the end; return the exit code as in ``__main__.main``."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        spec = read_spec(Path(spec_path))
    except PaddleGpuError as error:
        return _refused(error, os.EX_CONFIG)
    try:
        become_subreaper()
        keeper = Keeper(spec.claim_fd)  # before anything starts a thread
        return asyncio.run(_run(spec, attached_lease(spec), keeper))
    except PaddleGpuError as error:
        return _refused(error, os.EX_CANTCREAT)


def attached_lease(spec: AgentSpec) -> Lease | None:
    """Return the lease that the spec names; None: it names none. Raises PlacementError."""
    if spec.book is None or spec.claim is None or spec.claim_fd is None:
        return None
    from jupyter_paddle_gpu.placement.local.lease import HeldLease  # only where a book is used

    try:
        return HeldLease.attach(spec.book, spec.claim, spec.claim_fd)
    except OSError as error:
        raise PlacementError(f"The lease {spec.claim} cannot be kept: {error}", "Request the GPU again.") from error


async def _run(spec: AgentSpec, lease: Lease | None, keeper: Keeper) -> int:
    return await Agent(spec, lease, keeper).run()


def _refused(error: PaddleGpuError, code: int) -> int:
    sys.stderr.write(f"{error}\n")
    return code
