"""What a session's agent says, and what it means for the session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from jupyter_paddle_gpu.core import wire
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.core.session import Event, State
from jupyter_paddle_gpu.server.line import Line
from jupyter_paddle_gpu.server.session import Session

# A kernel that ended by itself keeps its devices for a restart this long; Jupyter's restarter looks every 3 s.
RESTART_PATIENCE_S = 20.0

Answer = Callable[[wire.Call], Coroutine[None, None, object]]
Begin = Callable[[Coroutine[None, None, object]], None]


class Hearing:
    """Of one session, over all its agents; on the manager's loop. ``answer`` answers what a kernel asks, ``begin`` runs
    work beside this."""

    def __init__(self, session: Session, line: Line, answer: Answer, begin: Begin) -> None:
        self._session = session
        self._line = line
        self._answer = answer
        self._begin = begin
        self._giving_up: asyncio.TimerHandle | None = None

    def starting(self) -> None:
        """The kernel is started again: it keeps its devices."""
        if self._giving_up is not None:
            self._giving_up.cancel()

    def hear(self, message: wire.Message) -> None:
        """The agent has said this."""
        session = self._session
        match message:
            case wire.KernelReady() if session.state in (State.STARTING, State.RESTORING):
                session.move(Event.KERNEL_READY)
            case wire.KernelExited():
                session.kernel_exited(message)
                self._giving_up = asyncio.get_running_loop().call_later(RESTART_PATIENCE_S, self._give_up)
            case wire.Noticed(notice):
                session.notice(notice)
            case wire.Served():
                session.served(message)
            case wire.Saved() | wire.Restored() | wire.KernelSeen():
                session.news(message)
            case wire.Seen(reading):
                self._begin(self._line.saw(reading))
            case wire.Call():
                self._begin(self._reply(message))
            case wire.Answer():
                self._line.answered(message)
            case _:
                pass  # the rest is between agent and kernel

    def _give_up(self) -> None:
        """Return the devices of a kernel that nobody starts again."""
        self._begin(self._line.tell(wire.Stop()))

    async def _reply(self, call: wire.Call) -> None:
        try:
            answer = wire.Answer(call.id, await self._answer(call))
        except PaddleGpuError as error:
            answer = wire.Answer(call.id, None, error.fault, error.next_step)
        await self._line.tell(answer)
