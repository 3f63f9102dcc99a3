"""Questions of the kernel on their way to the server, or the other way round, and the answers back."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

from jupyter_paddle_gpu.agent.peers import Peer
from jupyter_paddle_gpu.core.wire import Answer, Call, Role

NO_SERVER = "No Jupyter server looks after this kernel at the moment"
NO_SERVER_STEP = "Open the notebook in Jupyter again, then repeat this."
NO_KERNEL = "No kernel that could be asked runs in this session, or it has not loaded the extension"
NO_KERNEL_STEP = "Run %load_ext jupyter_paddle_gpu in the notebook, then repeat this."


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

    def ask(self, asker: Peer, call: Call, asked: Peer | None) -> None:
        """Pass a call of ``asker`` on to ``asked``; None: there is nobody, and the asker is told."""
        if asked is None:
            asker.send(_nobody(asker, call.id))
            return
        number = next(self._numbers)
        self._pending[number] = _Pending(asker, asked, call.id)
        asked.send(dataclasses.replace(call, id=number))

    def answer(self, asked: Peer, answer: Answer) -> None:
        """Pass an answer back; one that nobody (or somebody else) was asked for is dropped."""
        pending = self._pending.get(answer.id)
        if pending is not None and pending.asked is asked:
            del self._pending[answer.id]
            pending.asker.send(dataclasses.replace(answer, id=pending.id))

    def left(self, peer: Peer) -> None:
        """Forget who asked; tell those whose question this peer had that it is gone."""
        for number, pending in list(self._pending.items()):
            if peer in (pending.asker, pending.asked):
                del self._pending[number]
            if peer is pending.asked:
                pending.asker.send(_nobody(pending.asker, pending.id))


def _nobody(asker: Peer, call: int) -> Answer:
    """The answer to who asks the other side while that is not there."""
    if asker.role is Role.KERNEL:
        return Answer(call, None, NO_SERVER, NO_SERVER_STEP)
    return Answer(call, None, NO_KERNEL, NO_KERNEL_STEP)
