"""The sessions of this process, looked after by one loop in a thread of its own: so they live under a Jupyter server
as well as under a plain client that blocks between its calls."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

from jupyter_paddle_gpu.core.errors import SessionNotFound
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement import choose
from jupyter_paddle_gpu.placement.base import Overview, Placement
from jupyter_paddle_gpu.placement.private import make_private
from jupyter_paddle_gpu.server import commands, orphans
from jupyter_paddle_gpu.server.driver import Driver
from jupyter_paddle_gpu.server.record import REFRESH_S, Launch, Notebook, Ownership, Record
from jupyter_paddle_gpu.server.session import Session
from jupyter_paddle_gpu.server.settings import Settings
from jupyter_paddle_gpu.server.sight import Sight
from jupyter_paddle_gpu.server.view import SessionView

logger = logging.getLogger(__name__)

T = TypeVar("T")
CLOSE_S = 2.0


class Manager:
    """All sessions of this process. Its methods may be called from any thread; those that are coroutines, from any
    event loop."""

    _of_process: ClassVar[tuple[int, Manager] | None] = None
    _making: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, settings: Settings, placement: Placement) -> None:
        self.settings = settings
        self._placement = placement
        self.sight = Sight()
        self._drivers: dict[str, Driver] = {}
        self._to_adopt: dict[str, tuple[Record, Ownership]] = {}
        self._observers: list[Callable[[SessionView], None]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="paddle-gpu-sessions", daemon=True)
        self._thread.start()

    @classmethod
    def of_process(cls) -> Manager:
        """Return the one manager of this process, made at the first call."""
        with cls._making:
            if cls._of_process is None or cls._of_process[0] != os.getpid():
                manager = cls(Settings.of_user(), choose.this_machine())
                atexit.register(manager.close)
                cls._of_process = (os.getpid(), manager)
            return cls._of_process[1]

    def place_by(self, placement: Placement) -> None:
        """Use ``placement`` for all sessions; to be called before the first."""
        self._placement = placement

    @property
    def remote(self) -> bool:
        """Whether the messages of kernels leave this machine."""
        return self._placement.remote

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._refreshing = self._loop.create_task(self._refresh())
        try:
            self._loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self._loop)  # those of forgotten sessions too, whose kernels still save
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.close()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            for driver in self._drivers.values():
                driver.session.ownership.refresh()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the sessions' loop and wait for it on the caller's."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """Leave all sessions to their agents and end the loop: this process ends. May be repeated."""
        if self._loop.is_closed() or not self._thread.is_alive():
            return
        leaving = asyncio.run_coroutine_threadsafe(self._leave(), self._loop)
        with suppress(concurrent.futures.TimeoutError):
            leaving.result(CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_S)

    async def _leave(self) -> None:
        await asyncio.gather(*(driver.close() for driver in self._drivers.values()))
        await self._placement.close()

    # Sessions.

    async def open(self, session: str, request: GpuRequest, guarded: bool, launch: Launch) -> Driver:
        """Make a session and begin to place it; it is started and known at once, also where it has to wait."""
        record = Record(session, request, launch, guarded, self.settings.adoptable, lease_s=self.settings.lease_s)

        async def begin() -> Driver:
            driver = self._new_driver(record)
            await driver.start(launch)
            return driver

        return await self.call(begin())

    def _new_driver(self, record: Record, ownership: Ownership | None = None) -> Driver:
        files = self.settings.files(record.session)
        make_private(files.directory)
        make_private(files.runtime)
        if ownership is None:
            ownership = Ownership(files)
            ownership.take()
        session = Session(record, self.settings, self._tell, ownership)
        driver = self._drivers[record.session] = Driver(session, self._placement, commands.answer, self.sight)
        return driver

    async def check(self, request: GpuRequest) -> None:
        """Raise RequestError where ``request`` can never be met on this machine."""
        await self.call(self._placement.check(request))

    async def forget(self, session: str) -> None:
        """Drop a session that was stopped from what is shown."""
        self._drivers.pop(session, None)
        self.sight.forget(session)

    def views(self) -> list[SessionView]:
        """Return all sessions of this process as they are now."""
        return [driver.session.view() for driver in list(self._drivers.values())]

    def view(self, session: str) -> SessionView:
        """Return one session as it is now. Raises SessionNotFound."""
        return self._driver(session).session.view()

    async def change(self, session: str, config: Mapping[str, object]) -> SessionView:
        """Change a session's request. Raises SessionNotFound, RequestError."""
        return await self._command(self._driver(session), lambda driver: commands.change(driver, config))

    async def release(self, session: str) -> SessionView:
        """Let a session give its GPU back. Raises SessionNotFound."""
        return await self._command(self._driver(session), commands.release)

    async def _command(self, driver: Driver, command: Callable[[Driver], Coroutine[Any, Any, None]]) -> SessionView:
        await self.call(command(driver))
        return driver.session.view()

    async def ask(self, session: str, method: str, params: Mapping[str, object]) -> object:
        """Let a session's kernel save or restore (see wire.Call), however long that takes, and return its answer.

        Raises SessionNotFound, KernelRefused, AgentUnreachable.
        """
        return await self.call(self._driver(session).line.ask(method, params))

    def launch(self, session: str) -> Launch:
        """Return what a session's kernel is started with. Raises SessionNotFound."""
        return self._driver(session).session.record.launch

    async def overview(self) -> Overview:
        """Return devices, claims and tiers of the machine."""
        return await self.call(self._placement.overview())

    def _driver(self, session: str) -> Driver:
        try:
            return self._drivers[session]
        except KeyError:
            raise SessionNotFound(
                f"There is no session {session}", "GET /paddle-gpu/sessions lists the sessions of this server."
            ) from None

    async def look(self) -> None:
        """Tell all agents how often somebody wants to see their devices."""

        async def tell() -> None:
            for driver in list(self._drivers.values()):
                await driver.line.look()

        await self.call(tell())

    # Observers.

    def observe(self, observer: Callable[[SessionView], None]) -> None:
        """Call ``observer`` with every change of a session, from the sessions' thread."""
        self._observers.append(observer)

    def _tell(self, view: SessionView) -> None:
        for observer in list(self._observers):
            observer(view)

    # The sessions of a server that was killed.

    def claim_orphans(self) -> list[Record]:
        """Take over the sessions whose server is no more, and return their records; see orphans. Meant for the start of
        a Jupyter server, once."""
        found = orphans.claim(self.settings, self._drivers)
        self._to_adopt.update({record.session: (record, ownership) for record, ownership in found})
        return [record for record, _ in self._to_adopt.values()]

    def orphan(self, session: str) -> Record | None:
        """Return the record of a session that this process has taken over and not gone on with yet."""
        found = self._to_adopt.get(session)
        return found[0] if found else None

    async def adopt(self, session: str, launch: Launch) -> Driver:
        """Go on with a session taken over: with its agent where that lives, else in the queue."""
        record, ownership = self._to_adopt.pop(session)

        async def begin() -> Driver:
            driver = self._new_driver(record, ownership)
            driver.adopt(await self._placement.adopt(driver.session.order()), launch)
            return driver

        return await self.call(begin())

    async def note_notebooks(self, notebooks: Mapping[str, tuple[Notebook, ...]]) -> None:
        """Remember Jupyter's own sessions by kernel, for the server that may have to come after us."""

        async def note() -> None:
            for session, driver in self._drivers.items():
                driver.session.opened_in(notebooks.get(session, ()))

        await self.call(note())
