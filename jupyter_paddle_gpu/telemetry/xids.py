"""Xid errors: what NVIDIA's driver reports of a GPU that fails, as events that are kept until they are asked for."""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from typing import Any

import pynvml

from jupyter_paddle_gpu.telemetry.faults import reason_of

KEPT = 8  # of one GPU


class XidWatch:
    """Hears of the errors of each GPU from its ``add`` to ``close``. A driver that tells none to us is no fault."""

    def __init__(self) -> None:
        self._set: Any = None
        self._seen: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=KEPT))
        self._unknown: dict[str, str] = {}

    def add(self, uuid: str, handle: Any) -> None:
        """Hear of this GPU, by NVML's handle, from now on; what was heard before stays."""
        self._unknown.pop(uuid, None)
        try:
            self._set = self._set or pynvml.nvmlEventSetCreate()
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._set)
        except pynvml.NVMLError as error:
            self._unknown[uuid] = reason_of(error)

    def close(self) -> None:
        """Hear nothing any more. May be repeated."""
        events, self._set = self._set, None
        if events is not None:
            with contextlib.suppress(pynvml.NVMLError):  # it went with its driver
                pynvml.nvmlEventSetFree(events)

    def read(self) -> None:
        """Take in what has happened since the last time; never waits."""
        while self._set is not None:
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
                self._seen[pynvml.nvmlDeviceGetUUID(event.device)].append(int(event.eventData))
            except pynvml.NVMLError:  # nothing more, or a driver whose fault each field tells
                return

    def of(self, uuid: str) -> tuple[tuple[int, ...] | None, str]:
        """Return the errors of a GPU, the newest last, or None and the reason."""
        if uuid in self._unknown:
            return None, self._unknown[uuid]
        return tuple(self._seen[uuid]), ""
