"""Questions of a session to its kernel, and the answers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping

from jupyter_paddle_gpu.core.errors import AgentUnreachable, KernelRefused
from jupyter_paddle_gpu.core.wire import Answer, Call, Message

Send = Callable[[Message], Awaitable[None]]


class Asking:
    """Of one session, on its loop."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[Answer]] = {}

    async def ask(self, send: Send, method: str, params: Mapping[str, object]) -> object:
        """Return what the kernel answers, however long it takes. Cancelled, the kernel goes on all the same.

        Raises KernelRefused with its fault and next step, AgentUnreachable where the agent ends before.
        """
        number = next(self._numbers)
        answered = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            await send(Call(number, method, params))
            answer = await answered
        finally:
            self._open.pop(number, None)
        if answer.error is not None:
            raise KernelRefused(answer.error, answer.next_step)
        return answer.result

    def answered(self, answer: Answer) -> None:
        """The kernel has answered; one that nobody waits for any more is dropped."""
        question = self._open.pop(answer.id, None)
        if question is not None and not question.done():
            question.set_result(answer)

    def gone(self, why: str) -> None:
        """Nothing that was asked is answered any more."""
        questions, self._open = self._open, {}
        for question in questions.values():
            if not question.done():
                question.set_exception(AgentUnreachable(why, "Look again."))
