"""``/paddle-gpu/telemetry``: what the agents of all sessions see, as one stream of server-sent events."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.language import spoken
from jupyter_paddle_gpu.server.handlers import PaddleGpuHandler

SILENCE_S = 15.0  # then a comment is sent: proxies close what is silent, and a viewer that has gone is noticed
READINGS_PER_EVENT = 100  # an hour of 20 kernels is not one line


class TelemetryHandler(PaddleGpuHandler):
    """Begins with the history, or after ``Last-Event-ID`` where a browser comes back (``now``: with the newest of each
    session); ends with its connection."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Events whose data is a list of ``{session, reading}``, the oldest first."""
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-cache")
        self.set_header("X-Accel-Buffering", "no")  # nginx keeps a stream back otherwise
        loop, self._news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(self._news.set)

        sight = self.manager.sight
        sight.begin(wake)
        self._gone = False
        try:
            await self.manager.look()
            await self._follow(self.request.headers.get("Last-Event-ID", ""))
        except StreamClosedError:
            pass  # whoever looked has gone
        finally:
            sight.end(wake)
            await self.manager.look()

    def on_connection_close(self) -> None:
        """See tornado: the viewer has gone."""
        self._gone = True
        self._news.set()

    async def _follow(self, mark: str) -> None:
        """Write what is new; one that reads slowly gets it later, and together: nothing is kept for it."""
        await self.flush()
        while not self._gone:
            self._news.clear()
            mark, fresh = self.manager.sight.after(mark)
            said = spoken([to_plain(reading) for _, reading in fresh])
            rows = [{"session": session, "reading": one} for (session, _), one in zip(fresh, said, strict=True)]
            for first in range(0, len(rows), READINGS_PER_EVENT):
                part = rows[first : first + READINGS_PER_EVENT]
                named = f"id: {mark}\n" if first + READINGS_PER_EVENT >= len(rows) else ""  # all of it, or again
                self.write(f"{named}data: {json.dumps(part)}\n\n")
                await self.flush()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._news.wait(), SILENCE_S)
                continue
            self.write(": still here\n\n")
            await self.flush()
