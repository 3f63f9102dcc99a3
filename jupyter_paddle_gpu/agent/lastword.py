"""The last word: when an evicted kernel could not answer the cell that it ran, the agent answers in its place.

C code that holds the GIL until SIGKILL, or a crash in the middle of the save: the client would wait for ever. The
kernel's ports are free after its end and its clients come back to them by themselves: we bind them for a moment.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_paddle_gpu.core import evicted
from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import CellDone, CellRunning, Served

if TYPE_CHECKING:
    import zmq
    from jupyter_client.session import Session

logger = logging.getLogger(__name__)

PATIENCE_S = 3.0  # for the clients to come back; ZeroMQ tries ten times a second
SETTLE_S = 0.3  # for further clients, after the first
_POLL_MS = 20


class RunningCell:
    """What is known of the cell that the kernel runs; ``say_last_word`` answers it."""

    def __init__(self, cpu: bool) -> None:
        self._cpu = cpu  # it runs on the machine's CPU slot
        self._cell: CellRunning | None = None

    def heard(self, message: CellRunning | CellDone) -> None:
        self._cell = message if isinstance(message, CellRunning) else None

    def forget(self) -> None:
        """Another kernel process: it runs nothing yet."""
        self._cell = None

    def say_last_word(self, connection_file: Path, notice: EvictionNotice, answer: Served | None) -> None:
        """Answer the cell, if it still waits for an answer. Blocks for a few seconds; to be called after the kernel's
        end. Nothing is raised: nobody is left who could do better."""
        if self._cell is None:
            return
        text = _what_happened(notice, answer, self._cpu)
        logger.info("The last word, in place of the kernel: %s", text)
        try:
            with LastWord(connection_file) as last_word:
                heard = last_word.say(self._cell, "Evicted", text)
        except Exception:
            logger.exception("The running cell has no answer")
        else:
            logger.info("The cell's client %s", "was told" if heard else "did not come back")


def _what_happened(notice: EvictionNotice, answer: Served | None, cpu: bool) -> str:
    served = answer or Served(SaveOutcome.FAILED, detail="the kernel was killed")
    detail = f"{served.detail[:1].lower()}{served.detail[1:]}"  # the agent's own sentences begin with a capital
    return evicted.sentence(evicted.what_was_saved(replace(served, detail=detail)), notice, cpu)


class LastWord:
    """Binds a dead kernel's shell and IOPub ports, as a context. Raises OSError when they are taken for PATIENCE_S."""

    def __init__(self, connection_file: Path) -> None:
        import zmq  # only here: an agent lives beside every kernel, and this happens to few
        from jupyter_client.session import Session

        self._info: Mapping[str, Any] = json.loads(connection_file.read_bytes())
        key, scheme = self._info.get("key", "").encode(), self._info.get("signature_scheme", "hmac-sha256")
        self._session: Session = Session(key=key, signature_scheme=scheme)
        self._context: zmq.Context[Any] = zmq.Context()
        self._end_s = time.monotonic() + PATIENCE_S
        self._error = zmq.ZMQError
        self._shell, self._iopub = self._context.socket(zmq.ROUTER), self._context.socket(zmq.XPUB)
        self._iopub.xpub_verbose = True  # tell us each subscriber, not only the first
        self._shell.router_mandatory = True  # an answer to a client that is not back yet is an error, not lost

    def __enter__(self) -> LastWord:
        try:
            self._bind(self._shell, "shell_port")
            self._bind(self._iopub, "iopub_port")
        except BaseException:
            self._context.destroy(linger=0)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._context.destroy(linger=1000)

    def say(self, cell: CellRunning, name: str, text: str) -> bool:
        """Answer the cell with an error, and refuse what its clients had queued; return whether its client heard it."""
        fault = {"ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}
        identities = [bytes.fromhex(item) for item in cell.idents]
        answer = {"execution_count": cell.execution_count, "user_expressions": {}, "payload": []}
        heard = self._reply(identities, "execute_reply", {"status": "error", **fault, **answer}, cell.parent)
        self._wait_for_listeners()
        self._publish("error", fault, cell.parent)
        self._publish("status", {"execution_state": "idle"}, cell.parent)
        self._refuse_queued({"ename": name, "evalue": f"not run: {text}", "traceback": []})
        return heard

    def _bind(self, socket: zmq.Socket[Any], port: str) -> None:
        if secret := self._info.get("curve_secretkey"):
            socket.curve_secretkey = secret.encode()
            socket.curve_publickey = self._info["curve_publickey"].encode()
            socket.curve_server = True
        ip, number, transport = self._info["ip"], self._info[port], self._info.get("transport", "tcp")
        address = f"ipc://{ip}-{number}" if transport == "ipc" else f"{transport}://{ip}:{number}"
        while True:
            try:
                socket.bind(address)
            except self._error:
                if time.monotonic() >= self._end_s:
                    raise
                time.sleep(_POLL_MS / 1000)
            else:
                return

    def _wait_for_listeners(self) -> None:
        """Return when clients listen to IOPub again, and a little later for others.

        A ZeroMQ client subscribes again when its thread looks at that socket next: perhaps only after the reply.
        """
        end_s = self._end_s
        while (left_s := end_s - time.monotonic()) > 0:
            if self._iopub.poll(min(_POLL_MS, int(left_s * 1000))) and self._iopub.recv()[:1] == b"\x01":
                end_s = min(self._end_s, time.monotonic() + SETTLE_S)

    def _publish(self, kind: str, content: dict[str, Any], parent: Mapping[str, object]) -> None:
        message = self._session.msg(kind, content, parent={"header": parent})
        self._iopub.send_multipart(self._session.serialize(message, f"kernel.{kind}".encode()))

    def _reply(self, identities: list[bytes], kind: str, content: dict[str, Any], parent: Mapping[str, object]) -> bool:
        message = self._session.msg(kind, content, parent={"header": parent}, metadata={"status": "error"})
        while True:
            try:
                self._shell.send_multipart(self._session.serialize(message, identities))
            except self._error:
                if time.monotonic() >= self._end_s:
                    return False
                time.sleep(_POLL_MS / 1000)
            else:
                return True

    def _refuse_queued(self, fault: dict[str, Any]) -> None:
        """Requests that were on their way wait in the clients and come to us now; nobody else would answer them."""
        while self._shell.poll(_POLL_MS):
            identities, frames = self._session.feed_identities(self._shell.recv_multipart())
            try:
                header = self._session.deserialize(frames)["header"]
            except (ValueError, TypeError) as error:
                logger.warning("A request that is not well-formed stays unanswered: %s", error)
                continue
            kind = str(header["msg_type"]).removesuffix("_request") + "_reply"
            self._reply(identities, kind, {"status": "error", **fault}, header)
            self._publish("status", {"execution_state": "idle"}, header)
