"""What a user can ask of a session: its status, another request, its release."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.request import GpuRequest, check_fields
from jupyter_paddle_gpu.core.session import ENDED
from jupyter_paddle_gpu.core.wire import Call
from jupyter_paddle_gpu.placement.base import Pending
from jupyter_paddle_gpu.server.driver import Driver
from jupyter_paddle_gpu.server.granting import await_grant

ANSWER_S = 0.3  # a cell prints the answer and ends within this


async def answer(driver: Driver, call: Call) -> object:
    """Answer a kernel's call with the session, or with everybody's claims, as JSON values. Raises PaddleGpuError."""
    if call.method == "request":
        await change(driver, call.params)
    elif call.method == "release":
        await release(driver)
    elif call.method == "overview":
        return to_plain(await driver.placement.overview())
    elif call.method != "status":
        raise RequestError(f"There is no call {call.method!r}", "There are status, overview, request and release.")
    return to_plain(driver.session.view())


async def change(driver: Driver, config: Mapping[str, object]) -> None:
    """Change the session's request by ``config`` (the fields of GpuRequest.from_config; None stays as it is).

    Tier, grace and memory change in place. For another number of GPUs the kernel saves and starts again on them; a
    kernel without a GPU goes on until it has one. Raises RequestError; then nothing has changed.
    """
    check_fields(config)
    if driver.session.state in ENDED:
        raise RequestError("This session has ended", "Restart its kernel, or open the notebook again.")
    await _apply(driver, (driver.session.wanted or driver.session.record.request).changed(**config), Cause.CHANGED)


async def release(driver: Driver) -> None:
    """Give the session's GPU back, after a save; the kernel starts again without. May be repeated."""
    await _apply(driver, driver.session.record.request.changed(gpus=0), Cause.RELEASED)


async def _apply(driver: Driver, request: GpuRequest, cause: Cause) -> None:
    await driver.placement.check(request)
    have = driver.session.record.request
    if driver.session.wanted is not None and request.gpus == driver.session.wanted.gpus and driver.ahead is not None:
        await driver.ahead.update(request)
        driver.session.wanted = request
    elif request.gpus == have.gpus:
        _forget_wish(driver)
        await driver.change_in_place(request)
    else:
        _forget_wish(driver)
        await _move(driver, request, cause)


async def _move(driver: Driver, request: GpuRequest, cause: Cause) -> None:
    """Queue for another number of GPUs before anything is given up: what can never be met is refused here."""
    pending = await driver.placement.request(driver.session.order(request))
    if driver.pending is not None:
        driver.session.requested(request)
        driver.swap_pending(pending)
    elif driver.session.record.request.gpus == 0 and driver.placed is not None:
        driver.ahead, driver.session.wanted = pending, request
        driver.in_background(_move_when_granted(driver, pending, request))
    else:
        driver.ahead = pending
        driver.session.requested(request)
        driver.in_background(_evict_soon(driver, cause))


async def _evict_soon(driver: Driver, cause: Cause) -> None:
    """The cell that asked gets its answer, and its end, before the notice."""
    await asyncio.sleep(ANSWER_S)
    await driver.evict(cause)


async def _move_when_granted(driver: Driver, pending: Pending, request: GpuRequest) -> None:
    if await await_grant(driver.session, lambda: driver.ahead if driver.ahead is pending else None) is not None:
        driver.session.wanted = None
        driver.session.requested(request)
        await driver.evict(Cause.CHANGED)


def _forget_wish(driver: Driver) -> None:
    if driver.ahead is not None and driver.session.wanted is not None:
        driver.ahead.cancel()
        driver.ahead = driver.session.wanted = None
