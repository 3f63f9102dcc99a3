"""Which of a program's training loops a position belongs to."""

from __future__ import annotations

import dis
import inspect
import linecache
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from jupyter_paddle_gpu.checkpoint.stacks import outwards

_PACKAGE = __name__.partition(".")[0]
_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True)
class LoopKey:
    """``unit``: the cell or module that runs; ``line``: the source of the loop's line; ``turn``: how often before."""

    unit: str
    line: str
    turn: int

    def plain(self) -> list[object]:
        return [self.unit, self.line, self.turn]

    @classmethod
    def of(cls, data: Sequence[Any]) -> LoopKey:
        return cls(str(data[0]), str(data[1]), int(data[2]))


class LoopBook:
    """Numbers the loops of this process. Running the same cell again starts its numbers anew."""

    def __init__(self) -> None:
        self.done: list[LoopKey] = []
        self._code: CodeType | None = None
        self._turns: dict[tuple[str, str], int] = {}

    def key(self, frame: FrameType | None) -> LoopKey:
        """Return the key of a loop that begins in this frame of the user's code."""
        top = _unit_frame(frame)
        code = top.f_code if top is not None else None
        if code is not self._code:
            self._code, self._turns = code, {}
        unit, line = _unit(top), _line(frame)
        turn = self._turns.get((unit, line), 0)
        self._turns[unit, line] = turn + 1
        return LoopKey(unit, line, turn)

    def finish(self, key: LoopKey) -> None:
        """The loop is over: to its end, or left by break, an exception or an interrupt."""
        self.done = [other for other in self.done if other != key] + [key]


def users_frame() -> FrameType | None:
    """Return the frame that walks over us: not of this package, nor a generator that hands our items on (tqdm)."""
    for frame in outwards(sys._getframe(1)):
        if not (_is_ours(frame) or frame.f_code.co_flags & _GENERATOR):
            return frame
    return None


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE)


def left_by_break(frame: FrameType | None) -> bool:
    """Whether this frame drops its loop in good order (break, return) and not because an exception unwinds it."""
    if frame is None:
        return False
    opcode = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else -1
    return dis.opname[opcode] in ("POP_TOP", "POP_ITER", "END_FOR")


def _unit_frame(frame: FrameType | None) -> FrameType | None:
    for outer in outwards(frame):
        if not outer.f_code.co_flags & inspect.CO_OPTIMIZED:
            return outer
    return None


def _unit(frame: FrameType | None) -> str:
    """Name a cell by its text, and a file by its name, so that both are the same in the next process."""
    if frame is None:
        return ""
    filename = frame.f_code.co_filename
    if "ipykernel" in filename or filename.startswith("<"):
        return f"cell {zlib.crc32(''.join(linecache.getlines(filename, frame.f_globals)).encode()):08x}"
    return filename.rpartition("/")[2]


def _line(frame: FrameType | None) -> str:
    if frame is None:
        return ""
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals).strip()
    return f"{frame.f_code.co_name}: {source}"
