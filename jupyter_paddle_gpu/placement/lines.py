"""Messages to and from an agent: lines of a stream that is made again where it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from jupyter_paddle_gpu.core.errors import AgentUnreachable, WireError
from jupyter_paddle_gpu.core.wire import Message, decode, encode
from jupyter_paddle_gpu.placement.base import Reconnected

CLOSE_S = 1.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AgentLines:
    """One agent's messages. ``again`` returns new streams, after Hello; None once the agent has ended."""

    def __init__(self, streams: Streams, again: Callable[[], Awaitable[Streams | None]]) -> None:
        self._reader, self._writer = streams
        self._again = again

    async def receive(self) -> Message | Reconnected | None:
        """See Placed."""
        while True:
            line = b""
            with suppress(OSError, asyncio.LimitOverrunError, ValueError):
                line = await self._reader.readline()
            if line.endswith(b"\n"):
                with suppress(WireError):  # an agent of another version: what we do not know does not concern us
                    return decode(line)
            else:
                self._writer.close()
                if (streams := await self._again()) is None:
                    return None
                self._reader, self._writer = streams
                return Reconnected()

    async def send(self, message: Message) -> None:
        """Tell the agent. Raises AgentUnreachable where it has ended."""
        try:
            self._writer.write(encode(message))
            await self._writer.drain()
        except OSError:
            raise AgentUnreachable("The agent of this session has just ended", "Try again in a moment.") from None

    async def close(self) -> None:
        """Close the stream: the agent's lease begins to run."""
        self._writer.close()
        with suppress(OSError, asyncio.TimeoutError):  # TLS waits for an answer, perhaps of a machine that is gone
            await asyncio.wait_for(self._writer.wait_closed(), CLOSE_S)
