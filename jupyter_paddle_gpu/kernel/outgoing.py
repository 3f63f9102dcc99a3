"""Sends a kernel's messages from another thread than its main one, and knows when they have left the process."""

from __future__ import annotations

import time
from typing import Any

import zmq

_SETTLE_S = 0.01  # from "encoded by zmq" to "written to the socket", which happens in the same turn of its thread


class Outgoing:
    """Of one kernel; to be used in its shell channel thread, but for ``wait_left``."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._trackers: list[zmq.MessageTracker] = []

    def reply(self, content: dict[str, Any], identities: Any, message: dict[str, Any]) -> None:
        """Answer a request to its client."""
        session, kind = self._kernel.session, message["header"]["msg_type"]
        if kind == "execute_request":
            content |= {"execution_count": self._kernel.execution_count, "user_expressions": {}, "payload": []}
        kind = kind.removesuffix("_request") + "_reply"
        reply = session.msg(kind, content, parent=message, metadata={"status": content["status"]})
        self.send(session.serialize(reply, identities))

    def send(self, frames: list[Any]) -> None:
        """Send an encoded reply."""
        self._kernel.shell_stream.send_multipart(self._tracked(frames), copy=False)

    def publish(self, kind: str, content: dict[str, Any], message: dict[str, Any]) -> None:
        """Tell all clients what belongs to the request ``message``."""
        session, thread = self._kernel.session, self._kernel.iopub_thread
        topic = f"kernel.{self._kernel.ident}.{kind}".encode()
        frames = self._tracked(session.serialize(session.msg(kind, content, parent=message), topic))
        thread.schedule(lambda: thread.socket.send_multipart(frames, copy=False))

    def forget(self) -> None:
        """Nobody will wait for what was sent so far."""
        self._trackers.clear()

    def wait_left(self, timeout_s: float) -> bool:
        """Wait until all that was sent has left this process; False after ``timeout_s``."""
        end_s = time.monotonic() + timeout_s
        try:
            for tracker in self._trackers:
                tracker.wait(max(0.0, end_s - time.monotonic()))
        except zmq.NotDone:
            return False
        time.sleep(_SETTLE_S)
        return True

    def _tracked(self, frames: list[Any]) -> list[Any]:
        last = zmq.Frame(getattr(frames[-1], "bytes", frames[-1]), track=True, copy=False)
        self._trackers.append(last.tracker)
        return [*frames[:-1], last]
