"""The kernel's stdout and stderr: on disk with a limit, and the last lines in memory for whoever asks why it ended."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

logger = logging.getLogger(__name__)

LIMIT_BYTES = 8 << 20
TAIL_BYTES = 8 << 10
_CHUNK_BYTES = 64 << 10


class KernelLog:
    """The output of one kernel process, read by a thread: neither a full disk nor a file system that hangs reaches the
    kernel's ``print`` or the agent's loop."""

    def __init__(self, path: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._file = _LimitedFile(path, limit_bytes)
        self._tail = b""
        self._receiver, self.sender = os.pipe()
        self._thread = threading.Thread(target=self._pump, name="kernel-log", daemon=True)

    def start(self) -> None:
        """Begin to read. To be called when the child holds ``sender``, or does not exist: closes ours."""
        os.close(self.sender)
        self._thread.start()

    def tail(self, wait_s: float = 0.0) -> str:
        """Return the last lines, at most TAIL_BYTES. ``wait_s``: how long to wait for the end of the output."""
        self._thread.join(wait_s)
        text = self._tail.decode(errors="replace")
        return text if len(self._tail) < TAIL_BYTES else text.partition("\n")[2]

    def _pump(self) -> None:
        with os.fdopen(self._receiver, "rb", buffering=0) as pipe:
            while chunk := pipe.read(_CHUNK_BYTES):
                self._tail = (self._tail + chunk)[-TAIL_BYTES:]
                self._file.append(chunk)
        self._file.close()


class _LimitedFile:
    """Appends to ``path``; what is older than the limit moves to ``path.1`` and then goes."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._fd = -1
        self._size = 0
        self._complained = False

    def append(self, chunk: bytes) -> None:
        try:
            if self._fd < 0:
                self._open()
            if self._size and self._size + len(chunk) > self._limit_bytes:
                self.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._open()
            self._size += os.write(self._fd, chunk)
        except OSError as error:
            if not self._complained:
                logger.warning("The kernel's output is not all in %s: %s", self._path, error)
            self._complained = True

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._fd).st_size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
