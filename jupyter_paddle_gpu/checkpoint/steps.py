"""The loop behind guard.steps: batches, counted, with a boundary before each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.checkpoint.cursor import cursor_of
from jupyter_paddle_gpu.checkpoint.freezing import Freezer
from jupyter_paddle_gpu.checkpoint.loop import Loop
from jupyter_paddle_gpu.checkpoint.returning import Resume


def walk(loop: Loop, freezer: Freezer, epochs: int, resume: Resume) -> Iterator[tuple[int, Any]]:
    """Yield ``(step, batch)`` from the loop's beginning, or from where ``resume`` says."""
    freezer.begin(loop)
    finished = False
    try:
        yield from _epochs(loop, freezer, epochs, resume)
        finished = True
    finally:
        freezer.finish(loop, finished)


def _epochs(loop: Loop, freezer: Freezer, epochs: int, resume: Resume) -> Iterator[tuple[int, Any]]:
    cursor, reach = loop.cursor, freezer.reach
    step, first, batch = resume.position.step, resume.position.epoch, resume.position.batch
    for epoch in range(first, epochs):
        if epoch == first and resume.saved:
            enter_epoch(loop, resume)
        else:
            loop.begin_epoch()
            cursor.open(epoch)
            batch = 0
        while True:
            reach(step, epoch, batch)
            try:
                item = cursor.fetch()
            except StopIteration:
                break
            yield step, item
            step += 1
            batch += 1
    reach(step, epochs, 0)


def enter_epoch(loop: Loop, resume: Resume) -> None:
    """Stand in the middle of an epoch as if it had been run up to here."""
    saved, cursor = resume.saved, loop.cursor
    randoms.give(saved["epoch"]["random"])
    loop.epoch = {**saved["epoch"], "random": randoms.take()}  # as begin_epoch had it, for a second interruption
    cursor.load_state(saved["epoch"]["loader"])
    loop.begin_epoch()
    cursor.open(resume.position.epoch)
    cursor.skip(resume.position.batch)
    randoms.give(saved["random"])
    cursor.load_state(saved["loader"])


def plainly(loader: Iterable[Any], epochs: int) -> Iterator[tuple[int, Any]]:
    """Walk inside of another loop's step: its boundaries are the outer ones."""
    cursor = cursor_of(loader)
    step = 0
    for epoch in range(epochs):
        cursor.open(epoch)
        while True:
            try:
                batch = cursor.fetch()
            except StopIteration:
                break
            yield step, batch
            step += 1
