"""The one notice path: whatever ends the session comes through here, is told to the kernel, and gets one answer."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable

from jupyter_paddle_gpu.agent.eviction import Eviction
from jupyter_paddle_gpu.agent.kernel_life import POLITE_S, KernelLife
from jupyter_paddle_gpu.agent.kernel_process import KernelProcess
from jupyter_paddle_gpu.agent.peers import Peer
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import Message, Notice, Noticed, Served
from jupyter_paddle_gpu.telemetry.processes import lives

logger = logging.getLogger(__name__)

LAST_ANSWER_S = 0.3  # how long the answer of a kernel that has ended may still be on its way
ONLY_SIGTERM = "The kernel was told by SIGTERM only: the extension jupyter_paddle_gpu is not loaded in it."
NO_KERNEL = "No kernel was running."
NO_TIME = "There was no time to save."


class Evictor:
    """Owned by the agent, used from its loop. ``announce`` tells servers and observers."""

    def __init__(self, kernel: KernelLife, announce: Callable[[Message], None]) -> None:
        self._kernel = kernel
        self._announce = announce
        self._serving: list[Peer] = []  # kernel connections that have said Ready
        self._begun: asyncio.Future[Eviction] = asyncio.get_running_loop().create_future()
        self._changed = asyncio.Event()  # something that `_answer` waits for has happened
        self.eviction: Eviction | None = None
        self.answer: Served | None = None

    @property
    def serving(self) -> Peer | None:
        """The first kernel connection that serves notices: the kernel's own, others are of what it has started."""
        return self._serving[0] if self._serving else None

    def notice(self, notice: EvictionNotice) -> None:
        """Take a notice in. The first begins the end; a later one counts only if it leaves less time.

        One that is only played (cause DRILL) goes to the kernel, its answer to the watchers, and nothing ends.
        """
        if notice.cause is Cause.DRILL:
            for peer in self._serving:
                peer.send(Notice(notice))
            return
        now_s = self._now_s()
        if self.eviction is None:
            logger.info("Notice: %s", notice)
            self.eviction = Eviction(notice, now_s)
            self._begun.set_result(self.eviction)
        elif self.eviction.shorten(notice, now_s):
            logger.info("Notice, shorter than before: %s", notice)
            self._changed.set()
        else:
            return
        if notice.remaining_s > 0:  # otherwise there is no time to act on it
            self._announce(Noticed(self.eviction.current(now_s)))
            for peer in self._serving:
                self._tell(peer, self.eviction)

    async def serve(self) -> None:
        """Wait for a notice, let the kernel answer it, end the kernel. Returns when nothing of the kernel is left."""
        eviction = await self._begun
        await self._kernel.close()
        self.answer = await self._answer(eviction)
        logger.info("Answer: %s", self.answer)
        self._announce(self.answer)
        await self._kernel.end(min(POLITE_S, eviction.remaining_s(self._now_s())))

    def ready(self, peer: Peer) -> None:
        """A kernel connection serves notices from now on."""
        if peer not in self._serving:
            self._serving.append(peer)
            if self.eviction is not None:
                self._tell(peer, self.eviction)

    def served(self, peer: Peer, served: Served) -> None:
        """A kernel connection has answered."""
        if self.eviction is None:  # a drill, or a notice that reached the kernel by itself
            self._announce(served)
            return
        self.eviction.answered(peer, served)
        self._changed.set()

    def left(self, peer: Peer) -> None:
        """A kernel connection is gone."""
        if peer in self._serving:
            self._serving.remove(peer)
        if self.eviction is not None:
            self.eviction.gone(peer)
        self._changed.set()

    def something_ended(self) -> None:
        """The kernel or a process of it is gone."""
        self._changed.set()

    async def _answer(self, eviction: Eviction) -> Served:
        """Return what the kernel answers, or a sentence about why it does not."""
        process = self._kernel.process
        if process is None or not process.alive:
            return Served(SaveOutcome.NOTHING, detail=NO_KERNEL)
        if eviction.remaining_s(self._now_s()) <= 0:
            return Served(SaveOutcome.NOTHING, detail=NO_TIME)
        by_message = eviction.anybody_told
        if not by_message:
            process.signal(signal.SIGTERM)
        began_s = self._now_s()
        while not eviction.all_answered and (left_s := eviction.remaining_s(self._now_s())) > 0:
            if not process.alive and not _may_still_answer(process, eviction):
                await self._last_answers(eviction)
                break
            await self._change(left_s)
        if eviction.answer is not None:
            return eviction.answer
        if not by_message:
            return Served(SaveOutcome.NOTHING, detail=ONLY_SIGTERM)
        return Served(SaveOutcome.FAILED, detail=_why_unanswered(process, self._now_s() - began_s))

    async def _last_answers(self, eviction: Eviction) -> None:
        end_s = self._now_s() + LAST_ANSWER_S
        while eviction.waiting and (left_s := end_s - self._now_s()) > 0:
            await self._change(left_s)

    async def _change(self, timeout_s: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except asyncio.TimeoutError:
            return
        self._changed.clear()

    def _tell(self, peer: Peer, eviction: Eviction) -> None:
        eviction.told(peer)
        peer.send(Notice(eviction.current(self._now_s())))

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()


def _may_still_answer(process: KernelProcess, eviction: Eviction) -> bool:
    """Whether something behind the ended ``process`` (a shell, say) still saves.

    Not asked of the connections: the kernel's workers hold copies of them.
    """
    told = [who for who in eviction.waiting if isinstance(who, Peer)]
    return any(lives(peer.pid) for peer in told) if eviction.anybody_told else process.group_alive


def _why_unanswered(process: KernelProcess, waited_s: float) -> str:
    if process.alive:
        return f"The kernel did not answer within {waited_s:.1f} s and was killed."
    return f"The kernel ended before it had saved (exit code {process.exited.result()})."
