"""The one of each that a process has: its protection, its eviction, its line to the agent."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jupyter_paddle_gpu.checkpoint.training import Training
from jupyter_paddle_gpu.core.errors import AgentUnreachable, PaddleGpuError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.ranks import world_of
from jupyter_paddle_gpu.core.snapshot import Served
from jupyter_paddle_gpu.kernel.ending import KernelEnding, ProcessEnding
from jupyter_paddle_gpu.kernel.eviction import Ending, Eviction
from jupyter_paddle_gpu.kernel.goingon import GoingOn
from jupyter_paddle_gpu.kernel.identity import Identity
from jupyter_paddle_gpu.kernel.periodic import Periodic
from jupyter_paddle_gpu.kernel.protection import Protection
from jupyter_paddle_gpu.kernel.reply import RunningCell, Switchboard
from jupyter_paddle_gpu.kernel.rescue import Rescue
from jupyter_paddle_gpu.kernel.signals import SigtermWatch, need_main_thread
from jupyter_paddle_gpu.kernel.telling import say

if TYPE_CHECKING:
    from jupyter_paddle_gpu.core.wire import Call, Watch
    from jupyter_paddle_gpu.kernel.link import Link
    from jupyter_paddle_gpu.kernel.session import Session

log = logging.getLogger(__name__)

SHUTDOWN_PATIENCE_S = 1.0  # a Jupyter server sends SIGTERM after 2.5 s, SIGKILL after 5 s
ON_ITS_WAY_S = 0.2  # how much later we may hear a SIGTERM than the processes that got it with us
GRACE_S = 30.0  # what a SIGTERM leaves where nobody says more: the default of Kubernetes


class Runtime:
    """What the facade, the extension and the magics work with.

    Made by ``runtime()``; it only watches the training until ``protect`` makes it listen for notices.
    """

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.training = Training(say)
        self.training.ending = self._ends
        self.training.install()
        self.protection = Protection(self.training, identity.snapshot_directory(), identity.session)
        self.going_on = GoingOn(self.protection)
        self.training.before_fit = self.going_on.go_on
        self.watch = SigtermWatch(self._on_sigterm)
        self.eviction: Eviction | None = None
        self.link: Link | None = None
        self._session: Session | None = None
        self.board: Switchboard | None = None
        self.grace_s = GRACE_S
        self.every_s: float | None = None  # between the snapshots made by themselves, where no session says it
        self.periodic = Periodic(self.protection, self.every)
        self._judged: float | None = None  # the rate by which it was decided whether a save fits the grace
        self._warned = False

    @property
    def protecting(self) -> bool:
        """Whether notices are served."""
        return self.eviction is not None

    def protect_kernel(self, kernel: Any) -> None:
        """Serve notices in an ipykernel: from its agent if it has one, and SIGTERM. Repeatable.

        Raises AgentUnreachable when its agent does not answer; SIGTERM is served all the same. Raises PaddleGpuError
        outside the main thread.
        """
        if not self.protecting:
            need_main_thread()
            fault = self._connect()
            self.board = Switchboard.attach(kernel, self._on_cell)
            if self.link is not None:
                from jupyter_paddle_gpu.kernel.session import Session
                from jupyter_paddle_gpu.kernel.successor import answer_pages

                answer_pages(kernel)
                self._session = Session(kernel, self.protection, self.board, self.link)
            self._protect(KernelEnding(self.training.evict, self.board, self.watch))
            if fault is not None:
                raise fault

    def protect_process(self) -> None:
        """Serve notices in a script or a terminal. Repeatable. Raises PaddleGpuError outside the main thread."""
        if not self.protecting:
            need_main_thread()
            self._protect(ProcessEnding(self.training.evict, self.watch, self._speaks))

    def join_ranks(self) -> None:
        """Save together with the other ranks of this training from now on, if there are any. Repeatable.

        Raises StoreUnwritable.
        """
        if (world := world_of(os.environ)).size > 1:
            from jupyter_paddle_gpu.kernel.company import join  # what a process that is alone does not need

            join(world, self.protection, self._notice)

    def _speaks(self) -> bool:
        """Whether this process tells people what has happened: of several ranks the first, and who knows of a fault."""
        company = self.protection.company
        return company is None or company.world.main or bool(company.fault)

    def _connect(self) -> AgentUnreachable | None:
        if self.identity.agent is not None:
            from jupyter_paddle_gpu.kernel.link import Link  # what only a kernel with an agent needs

            link = Link(self.identity.agent, self._notice, self._hear)
            try:
                link.connect()
            except AgentUnreachable as error:
                return error
            self.link = link
        return None

    def _protect(self, ending: Ending) -> None:
        self.watch.install()
        self.eviction = Eviction(Rescue(self.protection), ending, self._served, comes_back=self.link is not None)
        self.periodic.start()
        atexit.register(self._at_exit)
        if self.link is not None:
            self.link.ready()

    def _at_exit(self) -> None:
        self.watch.hear()
        if self.eviction is not None:
            self.eviction.at_exit()

    def _ends(self) -> bool:
        """Whether this process is being evicted, by a SIGTERM perhaps that is just on its way."""
        end_s = time.monotonic() + ON_ITS_WAY_S
        while self.eviction is not None and not self.eviction.begun and time.monotonic() < end_s:
            time.sleep(0.01)
        return self.eviction is not None and self.eviction.begun

    def _notice(self, notice: EvictionNotice) -> None:
        if self.eviction is not None:
            if notice.cause is not Cause.DRILL:
                self.periodic.stop()
            self.eviction.notice(notice)

    def _hear(self, message: Call | Watch) -> None:
        if self._session is not None:  # nobody asks before this kernel has said that it is ready
            self._session.hear(message)

    def _on_sigterm(self) -> None:
        self._notice(EvictionNotice(Cause.SIGTERM, self.grace_s))

    def _served(self, served: Served) -> None:
        if self.link is not None:
            self.link.served(served)

    def _on_cell(self, running: RunningCell | None) -> None:
        if self.link is not None:
            self.link.cell(running)

    def steps(self, loader: Iterable[Any], epochs: int) -> Iterator[tuple[int, Any]]:
        """See guard.steps."""
        self.watch.look_again()  # Paddle takes the signal when it is imported: perhaps only after our installation
        self.going_on.go_on()
        last_look_s = time.monotonic()
        for item in self.training.steps(loader, epochs):
            if time.monotonic() - last_look_s > 1.0:
                self.watch.look_again()
                self.warn_once()
                last_look_s = time.monotonic()
            yield item

    def after_cell(self) -> None:
        """A cell has ended: what is worth telling by now, is told."""
        self.going_on.after_cell()
        self.warn_once()

    def warn_once(self) -> None:
        """Say, before any eviction, that a save would not fit the grace: when one has shown how long it takes."""
        rate = self.protection.store.rate
        if self._warned or rate in (None, self._judged):
            return
        self._judged = rate
        save_s = self.protection.estimate().seconds
        if save_s is not None and save_s > (grace_s := self.grace()):
            from jupyter_paddle_gpu.kernel.commands.words import too_short
            from jupyter_paddle_gpu.kernel.status import look

            self._warned = True
            say("\n".join(too_short(look(self), grace_s)))

    def save_before_shutdown(self) -> None:
        """Save what is unsaved, in the few seconds that a shutdown gives. What goes wrong is logged."""
        protection = self.protection
        if (
            (self.eviction is not None and self.eviction.begun)
            or not protection.unsaved()
            or protection.not_yet_restored()
        ):
            return
        try:
            protection.save(Cause.SHUTDOWN, SHUTDOWN_PATIENCE_S)
        except PaddleGpuError as error:
            log.warning("Nothing was saved at the shutdown: %s", error)

    def call(self, method: str, params: Mapping[str, object] | None = None, timeout_s: float = 30.0) -> object:
        """Ask the session's server. Raises AgentUnreachable in a kernel that is not ours."""
        if self.link is None:
            raise AgentUnreachable(
                "This kernel has no session",
                "Ask for one with %paddle_gpu request, or choose the kernel “Paddle GPU” from the launcher.",
            )
        return self.link.call(method, params, timeout_s)

    def grace(self) -> float:
        """Return the seconds that a notice leaves: the session's, else what ``grace_s`` says."""
        return float(self._asked().get("grace_s", self.grace_s))

    def every(self) -> float | None:
        """Return the seconds between the snapshots made by themselves (None: as their cost asks; 0: none), likewise."""
        every_s: float | None = self._asked().get("every_s", self.every_s)
        return every_s

    def _asked(self) -> Mapping[str, Any]:
        """Return the session's request as JSON values; empty where there is no session, or no answer."""
        if self.link is None:
            return {}
        try:
            view = self.call("status", timeout_s=2.0)
        except PaddleGpuError:
            return {}
        return view["request"] if isinstance(view, dict) else {}


_runtime: Runtime | None = None
_making = threading.Lock()


def runtime() -> Runtime:
    """Return this process's runtime, made at the first call."""
    global _runtime
    with _making:
        if _runtime is None:
            _runtime = Runtime(Identity.take())
        return _runtime
