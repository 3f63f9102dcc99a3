"""Waiting for devices, with the place in the queue shown meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jupyter_paddle_gpu.placement.base import Grant, Pending
from jupyter_paddle_gpu.server.session import Session

QUICK_GRANT_S = 0.3  # a free device is granted within this: nobody is shown as waiting for it
LOOK_S = 1.0  # how often a waiting session's place in the queue is read again


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
