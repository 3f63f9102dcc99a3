"""Requests on their way through ipykernel's own tasks are found, in whatever state the task is."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from ipykernel.utils import _async_in_context

from jupyter_paddle_gpu.kernel.queued import _taken

FIRST, SECOND = ["first"], ["second"]


@pytest.mark.parametrize("begun", [False, True])
def test_what_a_wrapped_handler_waits_with_is_found_once(begun: bool) -> None:
    async def shell_main(subshell_id: str | None, msg: list[str]) -> None:
        await asyncio.sleep(60)

    assert found(_async_in_context(partial(shell_main, None)), begun) == [FIRST, SECOND]


@pytest.mark.parametrize("begun", [False, True])
def test_what_the_channel_has_not_passed_on_yet_is_found(begun: bool) -> None:
    async def shell_channel_thread_main(msg: list[str]) -> None:
        await asyncio.sleep(60)

    assert found(shell_channel_thread_main, begun) == [FIRST, SECOND]


def test_tasks_of_others_are_left_alone() -> None:
    async def poll(msg: list[str]) -> None:
        await asyncio.sleep(60)

    assert found(poll, begun=True) == []


def found(handler: Any, begun: bool) -> list[list[Any]]:
    """Return what is found in a loop that handles two messages, before or after their tasks have begun."""

    async def main() -> list[list[Any]]:
        tasks = [asyncio.ensure_future(handler(message)) for message in (FIRST, SECOND)]
        if begun:
            await asyncio.sleep(0.01)
        taken = _taken(SimpleNamespace(io_loop=SimpleNamespace(asyncio_loop=asyncio.get_running_loop())))
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return taken

    return asyncio.run(main())
