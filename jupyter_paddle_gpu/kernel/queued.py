"""Finds the requests that were on their way to a kernel's main thread before anybody looked."""

from __future__ import annotations

import asyncio
from typing import Any

import zmq


def queued_messages(kernel: Any) -> list[list[Any]]:
    """Return the frames of what waits for the main thread, oldest first, and leave it waiting.

    To be called in the shell channel thread while the main thread stands still: both ends of the pair of sockets
    between the two are then this thread's.
    """
    return [*_taken(kernel), *_not_taken(kernel.shell_channel_thread.manager)]


def _taken(kernel: Any) -> list[list[Any]]:
    """What the main thread's loop has taken already: tasks that wait for the running cell's end."""
    loop = getattr(getattr(kernel, "io_loop", None), "asyncio_loop", None)
    tasks = asyncio.all_tasks(loop) if loop is not None else set()
    frames = [getattr(task.get_coro(), "cr_frame", None) for task in sorted(tasks, key=_age)]
    return [
        frame.f_locals["msg"]
        for frame in frames
        if frame is not None and frame.f_code.co_name == "shell_main" and "msg" in frame.f_locals
    ]


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
