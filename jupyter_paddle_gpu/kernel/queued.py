"""Finds the requests that were on their way to a kernel's main thread before anybody looked."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import zmq

_HANDLERS = {"shell_main", "shell_channel_thread_main"}  # of ipykernel 7's two threads, each with the message as `msg`
_WRAPPERS = {"run_in_context", "run_in_context_pre311", "preserve_context"}  # around them; the message comes last


def queued_messages(kernel: Any) -> list[list[Any]]:
    """Return the frames of what waits for the main thread, oldest first, and leave it waiting.

    To be called in the shell channel thread while the main thread stands still: both ends of the pair of sockets
    between the two are then this thread's.
    """
    channel = kernel.shell_channel_thread
    return [*_taken(kernel), *_not_taken(channel.manager), *_taken(channel)]


def _taken(owner: Any) -> list[list[Any]]:
    """What the loop of the kernel's main thread, or of the channel's, has taken already: tasks that have not come to it
    yet, or wait for the running cell's end."""
    loop = getattr(getattr(owner, "io_loop", None), "asyncio_loop", None)
    tasks = asyncio.all_tasks(loop) if loop is not None else set()
    found = (_message_of(task.get_coro()) for task in sorted(tasks, key=_age))
    return [frames for frames in found if frames is not None]


def _message_of(coroutine: Any) -> list[Any] | None:
    """Return the message that a task of ipykernel's handles; None: it handles none, or another task does it for it."""
    if not inspect.iscoroutine(coroutine) or coroutine.cr_frame is None:
        return None
    name, variables = coroutine.cr_frame.f_code.co_name, coroutine.cr_frame.f_locals
    if name in _HANDLERS:
        message = variables.get("msg")
    elif name not in _WRAPPERS:
        message = None
    elif inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
        message = variables["args"][-1]
    else:
        return _message_of(coroutine.cr_await)
    return message if isinstance(message, list) else None


def _age(task: asyncio.Task[Any]) -> int:
    number = task.get_name().rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _not_taken(manager: Any) -> list[list[Any]]:
    pair = manager._shell_channel_to_main
    messages = []
    try:
        while True:
            messages.append(pair.to_socket.recv_multipart(zmq.NOBLOCK, copy=False))
    except zmq.Again:
        pass
    for message in messages:
        pair.from_socket.send_multipart(message, copy=False)
    return messages
