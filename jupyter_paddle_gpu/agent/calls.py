"""Questions of the kernel on their way to the server, and the answers back."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

from jupyter_paddle_gpu.agent.peers import Peer
from jupyter_paddle_gpu.core.wire import Answer, Call

NO_SERVER = "No Jupyter server looks after this kernel at the moment"
NO_SERVER_STEP = "Open the notebook in Jupyter again, then repeat this."


@dataclass(frozen=True)
class _Pending:
    asker: Peer
    asked: Peer
    id: int


class CallRelay:
    """Numbers calls anew, so that two kernel connections may use the same numbers."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Pending] = {}

    def ask(self, asker: Peer, call: Call, server: Peer) -> None:
        """Pass a call of ``asker`` on to ``server``."""
        number = next(self._numbers)
        self._pending[number] = _Pending(asker, server, call.id)
        server.send(dataclasses.replace(call, id=number))

    def answer(self, server: Peer, answer: Answer) -> None:
        """Pass an answer back; one that nobody (or somebody else) was asked for is dropped."""
        pending = self._pending.get(answer.id)
        if pending is not None and pending.asked is server:
            del self._pending[answer.id]
            pending.asker.send(dataclasses.replace(answer, id=pending.id))

    def left(self, peer: Peer) -> None:
        """Forget who asked; tell those whose question this peer had that it is gone."""
        for number, pending in list(self._pending.items()):
            if peer in (pending.asker, pending.asked):
                del self._pending[number]
            if peer is pending.asked:
                pending.asker.send(Answer(pending.id, None, NO_SERVER, NO_SERVER_STEP))
