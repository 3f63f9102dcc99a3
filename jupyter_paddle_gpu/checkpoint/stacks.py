"""The stacks of this process's threads, walked from the inside outwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield this frame, who called it, and so on to the thread's first one."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def on_stack(frame: FrameType | None, thread_id: int) -> bool:
    """Whether this frame is being run, or waits for what it called, in that thread."""
    return any(other is frame for other in outwards(sys._current_frames().get(thread_id)))


def own_stack_has(frame: FrameType | None) -> bool:
    """Whether this frame has called us."""
    return on_stack(frame, threading.get_ident())
