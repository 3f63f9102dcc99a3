"""The line from one session to its present agent: what is told, asked and seen over it. Without an agent it is mute."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from jupyter_paddle_gpu.core.errors import AgentUnreachable, KernelRefused
from jupyter_paddle_gpu.core.telemetry import Reading
from jupyter_paddle_gpu.core.wire import Answer, Message
from jupyter_paddle_gpu.placement.base import Placed
from jupyter_paddle_gpu.server.asking import Asking
from jupyter_paddle_gpu.server.sight import Sight
from jupyter_paddle_gpu.server.watching import Watching


class Line:
    """Of one session, over all its agents; on the manager's loop."""

    def __init__(self, session: str, sight: Sight) -> None:
        self.placed: Placed | None = None
        self._watching = Watching(session, sight)
        self._asking = Asking()

    def begin(self, placed: Placed) -> None:
        """The session has an agent."""
        self.placed = placed
        self._watching.begin()

    def again(self) -> None:
        """The connection to the agent was lost, and with it what was asked and told."""
        self._asking.gone("The connection to the session's agent broke meanwhile")
        self._watching.begin()

    def end(self) -> None:
        """The agent has ended, or is left to itself."""
        self.placed = None
        self._asking.gone("The session's agent has ended meanwhile")

    async def tell(self, message: Message | None) -> None:
        """Tell the agent, where there is one. One that has just ended is heard of by whoever attends to it."""
        if self.placed is not None and message is not None:
            with suppress(AgentUnreachable):
                await self.placed.send(message)

    async def ask(self, method: str, params: Mapping[str, object]) -> object:
        """Let the kernel do something and return its answer. Raises KernelRefused, AgentUnreachable."""
        if self.placed is None:
            raise KernelRefused("No kernel runs in this session now", "Ask again once it has a GPU.")
        return await self._asking.ask(self.placed.send, method, params)

    def answered(self, answer: Answer) -> None:
        """The kernel has answered."""
        self._asking.answered(answer)

    async def look(self) -> None:
        """Tell the agent how often somebody wants to see its devices, where it does not know yet."""
        await self.tell(self._watching.look())

    async def saw(self, reading: Reading) -> None:
        """The agent has seen this."""
        await self.tell(self._watching.saw(reading))
