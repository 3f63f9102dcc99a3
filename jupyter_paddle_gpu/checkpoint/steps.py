"""The loop behind guard.steps: batches, counted, with a boundary before each of them."""

from __future__ import annotations

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
    reach = _boundaries(how)
    step, first, batch = how.resume.position.step, how.resume.position.epoch, how.resume.position.batch
    finished = False
    try:
        for epoch in range(first, epochs):
            batch = _enter(how, epoch)
            fetch = how.cursor.fetch
            while True:
                reach(step, epoch, batch)
                try:
                    item = fetch()
                except StopIteration:
                    break
                yield step, item
                step += 1
                batch += 1
        reach(step, epochs, 0)
        finished = True
    finally:
        if how.freezer is not None and how.loop is not None:
            how.freezer.finish(how.loop, finished)


def _boundaries(how: Walk) -> Callable[[int, int, int], None]:
    if how.freezer is None or how.loop is None:
        return lambda step, epoch, batch: None
    how.freezer.begin(how.loop)
    return how.loop.reach


def _enter(how: Walk, epoch: int) -> int:
    """Open an epoch; returns the number of its first batch."""
    resume, cursor, loop = how.resume, how.cursor, how.loop
    if loop is not None and resume.saved and epoch == resume.position.epoch:
        enter_epoch(loop, resume)
        return resume.position.batch
    if loop is not None:
        loop.begin_epoch()
    cursor.open(epoch)
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
