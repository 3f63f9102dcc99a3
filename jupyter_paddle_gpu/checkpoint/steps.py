"""The loop behind guard.steps: batches, counted, with a boundary before each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jupyter_paddle_gpu.checkpoint import randoms
from jupyter_paddle_gpu.checkpoint.cursor import Cursor
from jupyter_paddle_gpu.checkpoint.freezing import Freezer
from jupyter_paddle_gpu.checkpoint.loop import Loop
from jupyter_paddle_gpu.checkpoint.returning import Resume


@dataclass(frozen=True)
class Walk:
    """How a loop is walked: where it begins, and whose boundaries it has (None: it runs inside of another one's step,
    whose boundaries count)."""

    cursor: Cursor
    loop: Loop | None = None
    resume: Resume = field(default_factory=Resume)
    freezer: Freezer | None = None


def walk(begin: Callable[[Iterable[Any]], Walk], loader: Iterable[Any], epochs: int) -> Iterator[tuple[int, Any]]:
    """Yield ``(step, batch)``; ``begin`` says how, when the first one is asked for.

    One generator on purpose: each further one around it would cost every step.
    """
    how = begin(loader)
    if how.resume.skip:
        return
    if how.loop is None or how.freezer is None:
        yield from _plainly(how.cursor, epochs)
        return
    loop, gate, clock = how.loop, how.freezer.gate, time.perf_counter
    step, first = how.resume.position.step, how.resume.position.epoch
    finished = False
    how.freezer.begin(loop)
    try:
        for epoch in range(first, epochs):
            batch, moves = _enter(loop, how.resume, epoch), gate.moves
            fetch = loop.cursor.fetch
            while True:
                before, moves, now_s = moves, gate.moves, clock()
                if gate.attention or moves == before or now_s - loop.last_s >= loop.worth_s:
                    loop.reach(step, epoch, batch)
                else:  # what reach would do, without its call
                    loop.mark, loop.last_s = (step, epoch, batch, moves, None), now_s
                try:
                    item = fetch()
                except StopIteration:
                    break
                yield step, item
                step += 1
                batch += 1
        loop.reach(step, epochs, 0)
        finished = True
    finally:
        how.freezer.finish(loop, finished)


def _plainly(cursor: Cursor, epochs: int) -> Iterator[tuple[int, Any]]:
    step = 0
    for epoch in range(epochs):
        cursor.open(epoch)
        while True:
            try:
                item = cursor.fetch()
            except StopIteration:
                break
            yield step, item
            step += 1


def _enter(loop: Loop, resume: Resume, epoch: int) -> int:
    """Open an epoch; returns the number of its first batch."""
    if resume.saved and epoch == resume.position.epoch:
        enter_epoch(loop, resume)
        return resume.position.batch
    loop.begin_epoch()
    loop.cursor.open(epoch)
    return 0


def enter_epoch(loop: Loop, resume: Resume) -> None:
    """Stand in the middle of an epoch as if it had been run up to here."""
    saved, cursor = resume.saved, loop.cursor
    randoms.give(saved["epoch"]["random"])
    cursor.load_state(saved["epoch"]["loader"])
    loop.begin_epoch()
    cursor.open(resume.position.epoch)
    cursor.skip(resume.position.batch)
    randoms.give(saved["random"])
    cursor.load_state(saved["loader"])
