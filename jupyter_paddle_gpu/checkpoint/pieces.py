"""Tensors as pieces of a file: a piece is read or written by one thread while another adds up the checksums."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from isal import isal_zlib

from jupyter_paddle_gpu.checkpoint.state import RawTensor

Result = TypeVar("Result")

PIECE_BYTES = 16 * 2**20  # smaller ones cost more in handing over between the threads, larger ones in latency
_VIEWS = 1024  # what one preadv or pwritev takes: IOV_MAX of Linux


@dataclass(frozen=True)
class Piece:
    """Bytes from ``offset`` on: the end of the one tensor and the beginning of the next, by name."""

    offset: int
    parts: tuple[tuple[str, memoryview], ...]

    @property
    def nbytes(self) -> int:
        return sum(view.nbytes for _, view in self.parts)


def pieces(tensors: Iterable[tuple[str, memoryview]], offset: int, most: int = PIECE_BYTES) -> Iterator[Piece]:
    """Cut tensors that lie one behind the other from ``offset`` on into pieces of at most ``most`` bytes; the small
    tensors share one."""
    parts: list[tuple[str, memoryview]] = []
    nbytes = 0
    for name, view in _slices(tensors, most):
        if parts and (nbytes + view.nbytes > most or len(parts) == _VIEWS):
            yield Piece(offset, tuple(parts))
            offset, nbytes, parts = offset + nbytes, 0, []
        parts.append((name, view))
        nbytes += view.nbytes
    if parts:
        yield Piece(offset, tuple(parts))


def _slices(tensors: Iterable[tuple[str, memoryview]], most: int) -> Iterator[tuple[str, memoryview]]:
    for name, view in tensors:
        for start in range(0, max(1, view.nbytes), most):
            yield name, view[start : start + most]


class Checksums:
    """CRC-32 of each tensor, added up piece by piece in their order: zlib's, computed faster."""

    def __init__(self, names: Iterable[str]) -> None:
        self._crcs: dict[str, int] = dict.fromkeys(names, 0)

    def add(self, piece: Piece) -> None:
        """Go on with the bytes of the next piece."""
        for name, view in piece.parts:
            self._crcs[name] = isal_zlib.crc32(view, self._crcs[name])

    def join(self, piece: Piece, crcs: Iterable[int]) -> None:
        """Go on with the next piece, whose parts were computed already."""
        for (name, view), crc in zip(piece.parts, crcs, strict=True):
            self._crcs[name] = isal_zlib.crc32_combine(self._crcs[name], crc, view.nbytes)

    def __getitem__(self, name: str) -> int:
        return self._crcs[name]


def crc32(data: bytes | memoryview) -> int:
    """Return zlib's CRC-32, computed faster."""
    checksum: int = isal_zlib.crc32(data)
    return checksum


def transfer(items: Iterable[Piece], work: Callable[[Piece], Result], lanes: int = 1) -> Iterator[tuple[Piece, Result]]:
    """Do ``work`` on every piece in ``lanes`` threads, and yield each piece with its result, in their order.

    No more pieces are taken from ``items`` than are under way. Raises what ``work`` raises; whatever ends it, no work
    runs any more afterwards.
    """
    items = iter(items)
    first = list(itertools.islice(items, 2))
    if len(first) < 2:  # not worth a thread
        yield from ((piece, work(piece)) for piece in first)
        return
    under_way: deque[tuple[Piece, Future[Result]]] = deque()
    pool = ThreadPoolExecutor(lanes, "paddle-gpu-transfer")
    try:
        for piece in itertools.chain(first, items):
            under_way.append((piece, _submit(pool, work, piece)))
            if len(under_way) > 2 * lanes:
                yield _done(under_way)
        while under_way:
            yield _done(under_way)
    finally:
        pool.shutdown(cancel_futures=True)


def _submit(pool: ThreadPoolExecutor, work: Callable[[Piece], Result], piece: Piece) -> Future[Result]:
    try:
        return pool.submit(work, piece)
    except RuntimeError:  # an interpreter that exits begins no thread: the last save is made all the same
        done: Future[Result] = Future()
        done.set_result(work(piece))
        return done


def _done(under_way: deque[tuple[Piece, Future[Result]]]) -> tuple[Piece, Result]:
    piece, future = under_way.popleft()
    return piece, future.result()


def views(tensors: Mapping[str, RawTensor]) -> Iterator[tuple[str, memoryview]]:
    """Yield each tensor's bytes, flat, in the mapping's order."""
    for name, tensor in tensors.items():
        yield name, tensor.data.cast("B") if tensor.nbytes else memoryview(b"")
