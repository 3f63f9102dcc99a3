"""What is known of one session: on disk for its next server, in memory for whoever looks."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.session import ENDED, Event, State, advance
from jupyter_paddle_gpu.core.units import format_duration
from jupyter_paddle_gpu.core.wire import KernelExited, Served
from jupyter_paddle_gpu.language import translated
from jupyter_paddle_gpu.placement.base import Gone, Order, Waiting
from jupyter_paddle_gpu.server.news import News, TrainingNews
from jupyter_paddle_gpu.server.record import Launch, Notebook, Ownership, Record
from jupyter_paddle_gpu.server.settings import Settings
from jupyter_paddle_gpu.server.view import NoticeView, SessionView

logger = logging.getLogger(__name__)


class Session:
    """Changed on the manager's loop only; ``exit_code``, ``state`` and ``view()`` may be read from any thread."""

    def __init__(
        self, record: Record, settings: Settings, publish: Callable[[SessionView], None], ownership: Ownership
    ) -> None:
        self.record = record
        self.files = settings.files(record.session)
        self.ownership = ownership
        self.state = State.REQUESTED
        self.exit_code: int | None = None  # of a kernel that ended; None: it runs, or will
        self.wanted: GpuRequest | None = None  # what is queued for while the kernel goes on
        self.devices: tuple[Device, ...] = ()
        self.stopping = False
        self.noticed = False  # the present agent was told to end
        self._publish = publish
        self._settled = asyncio.Event()
        self._waiting = Waiting()
        self._detail = ""
        self._log_tail = ""
        self._served: Served | None = None
        self._notice: NoticeView | None = None
        self._training = TrainingNews()

    def order(self, request: GpuRequest | None = None) -> Order:
        """Return what a placement is asked for, with another ``request`` where given."""
        record = self.record
        return Order(
            record.session,
            request or record.request,
            self.files,
            record.launch.label,
            record.lease_s,
            record.launch.env,
        )

    # What happens to it.

    def restarted(self, launch: Launch) -> None:
        """The kernel is to start, or to start again."""
        self.exit_code, self._log_tail = None, ""
        self._settled.clear()
        self._remember(launch=launch)

    def requested(self, request: GpuRequest) -> None:
        """``request`` is the session's own from now on."""
        self._remember(request=request)
        self.show()

    def queued(self, waiting: bool) -> None:
        """The session has no agent and waits (True), or has one (False)."""
        self._remember(waiting=waiting)

    def opened_in(self, notebooks: tuple[Notebook, ...]) -> None:
        """These sessions of Jupyter's use the kernel."""
        if notebooks != self.record.notebooks:
            self._remember(notebooks=notebooks)

    def waits(self, waiting: Waiting) -> None:
        """The place in the queue was looked up."""
        self._waiting = waiting
        self._settled.set()
        self.show()

    def waiting_is_over(self) -> None:
        """Nothing holds the session up any more; what comes of that is shown with it."""
        self._waiting = Waiting()

    def move(self, event: Event) -> None:
        """Advance the state and tell everybody."""
        self.state = advance(self.state, event)
        if self.state is not State.EVICTING:
            self._notice = None
        if event in (Event.SCHEDULED, Event.STOP):
            self._waiting = Waiting()
        if event in (Event.GONE, Event.KERNEL_GONE):
            self._training.interrupted()
        if event is Event.KERNEL_READY:
            self._detail = ""
        if self.state is State.RUNNING or self.state in ENDED:
            self._settled.set()
        self.show()

    def notice(self, notice: EvictionNotice) -> None:
        """The agent has told the kernel to give up its place."""
        self.noticed = True
        by = f" by {notice.by}" if notice.by else ""
        left = format_duration(notice.remaining_s)
        self._notice = NoticeView(notice.cause, notice.by, time.time() + notice.remaining_s)
        self._detail = f"Gives up its place ({notice.cause.value}{by}), {left} left for the save"
        self.move(Event.NOTICE)

    def lost(self, gone: Gone) -> None:
        """The agent has ended for good, and comes back elsewhere. What a notice said before stays."""
        if not self.noticed and gone.cause is not None:
            self._detail = f"Lost its place without a notice ({gone.cause.value}): the last snapshot is what is left"
        self.move(Event.GONE)

    def served(self, served: Served) -> None:
        """The kernel has answered the notice."""
        self._served = served
        if self.exit_code is None:  # otherwise the kernel's own end is the news
            self._detail = served.detail or served.outcome.value
        self.show()

    def news(self, news: News) -> None:
        """The kernel tells of its training."""
        if self._training.hear(news, time.time()):
            self.show()

    def kernel_exited(self, exited: KernelExited) -> None:
        """The kernel ended by itself; its devices are still ours."""
        self.exit_code, self._log_tail = exited.exit_code, exited.log_tail
        last = "\n  ".join(["", *exited.log_tail.splitlines()])
        self._detail = f"The kernel {_how_it_ended(exited.exit_code)}{last}"
        self.move(Event.KERNEL_GONE)
        self._settled.set()

    def kernel_ended(self, exit_code: int) -> None:
        """The kernel has ended as far as its client is concerned. An exit code known before stays."""
        if self.exit_code is None:
            self.exit_code = exit_code

    def failed(self, detail: str, exit_code: int) -> None:
        """Nothing is done for this session any more, unless it is started again."""
        self.state, self.wanted, self._waiting, self._notice = State.FAILED, None, Waiting(), None
        if self.exit_code is None:  # otherwise the kernel's own end is the news
            self._detail = detail
        self.kernel_ended(exit_code)
        self.files.record.unlink(missing_ok=True)
        self._settled.set()
        self.show()

    # What is told.

    async def settled(self, patience_s: float) -> None:
        """Wait until the kernel is ready, has ended, waits for devices, or ``patience_s`` have passed."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._settled.wait(), patience_s)

    def _remember(self, **fields: object) -> None:
        self.record = dataclasses.replace(self.record, **fields)  # type: ignore[arg-type]  # fields of Record
        if self.stopping or self.state is State.FAILED:
            return
        try:
            self.record.write(self.files)
        except OSError as error:  # a full disk must not end a kernel
            logger.warning("A later server will not find %s: %s", self.record.launch.label, error)

    def show(self) -> None:
        """Tell the observers how things stand."""
        self._publish(self.view())

    def view(self) -> SessionView:
        """Return what is shown of this session, its sentences in the user's language."""
        served = self._served
        return SessionView(
            id=self.record.session,
            label=self.record.launch.label,
            kernel_name=self.record.launch.kernel_name,
            state=self.state,
            request=self.record.request,
            devices=tuple(device.id for device in self.devices),
            device_kind=self.devices[0].kind.value if self.devices else "",
            position=self._waiting.position,
            why=translated(self._waiting.why),
            wanted=self.wanted,
            detail=translated(self._detail),
            step=served.step if served else None,
            snapshot=str(served.snapshot) if served and served.snapshot else None,
            exit_code=self.exit_code,
            log_tail=self._log_tail,
            notice=self._notice,
            saved=self._training.saved,
            restored=self._training.restored,
        )


def _how_it_ended(exit_code: int) -> str:
    """Return how, in words; ``exit_code`` is negative for a signal, or 128 and more as a shell says it."""
    signum = -exit_code if exit_code < 0 else exit_code - 128
    if signum == signal.SIGKILL:
        return "was killed (SIGKILL): if nobody did that, the machine or the container has run out of memory"
    if signum in set(signal.Signals):
        return f"was ended by {signal.Signals(signum).name}"
    return f"ended with exit code {exit_code}"
