"""Waiting for devices, with the place in the queue shown meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jupyter_paddle_gpu.core.errors import PlacementError, PlaceTaken
from jupyter_paddle_gpu.placement.base import Grant, Pending, Placed, Placement, Waiting
from jupyter_paddle_gpu.server.session import Session

QUICK_GRANT_S = 0.3  # a free device is granted within this: nobody is shown as waiting for it
LOOK_S = 1.0  # how often a waiting session's place in the queue is read again
REFUSALS = 5  # so often a node may not take a place that was granted on it; the pauses double from AFTER_REFUSAL_S
AFTER_REFUSAL_S = 0.5


async def await_grant(session: Session, still: Callable[[], Pending | None]) -> Grant | None:
    """Wait for the devices of ``still()``, which may change meanwhile.

    Returns None where it was cancelled for good. Raises PlacementError where the queue is lost.
    """
    while (pending := still()) is not None and not session.stopping:
        waiter = asyncio.ensure_future(pending.granted())
        try:
            await asyncio.wait({waiter}, timeout=QUICK_GRANT_S)
            while not waiter.done():
                session.waits(await pending.waiting())
                await asyncio.wait({waiter}, timeout=LOOK_S)
            if still() is pending and not session.stopping:
                return waiter.result()
        finally:
            waiter.cancel()
    return None


async def start(session: Session, placement: Placement, grant: Grant) -> Placed:
    """Start the agent on granted devices, with what holds it up shown meanwhile. Raises as ``Placement.start``."""
    starting = asyncio.ensure_future(placement.start(session.order(), grant))
    shown = ""
    try:
        while not starting.done():
            if grant.why != shown:
                shown = grant.why
                session.waits(Waiting(None, shown))
            await asyncio.wait({starting}, timeout=LOOK_S)
        return await starting
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        session.waiting_is_over()


async def after_refusals(refusals: int, error: PlaceTaken) -> None:
    """Wait after so many ``refusals`` in a row. Raises PlacementError where they are enough."""
    if refusals >= REFUSALS:
        raise PlacementError(f"{refusals} times in a row: {error.fault}", "Ask whoever runs the cluster.") from error
    if refusals:
        await asyncio.sleep(AFTER_REFUSAL_S * 2**refusals)
