"""What this kernel and its session say to each other beside notices: news of the training, and what a sidebar asks."""

from __future__ import annotations

from typing import Any

from jupyter_paddle_gpu.core.wire import Call, KernelSeen, Restored, Saved, Watch
from jupyter_paddle_gpu.kernel.link import Link
from jupyter_paddle_gpu.kernel.orders import Board, Orders
from jupyter_paddle_gpu.kernel.protection import Protection
from jupyter_paddle_gpu.kernel.pulse import Pulse


class Session:
    """One per kernel that has a session; speaks from when it is made, until the process ends."""

    def __init__(self, kernel: Any, protection: Protection, board: Board | None, link: Link) -> None:
        self._link = link
        self._orders = Orders(kernel, protection, board)
        self._pulse = Pulse(protection, lambda sample: link.tell(KernelSeen(sample)))
        protection.on_saved = lambda snapshot: link.tell(Saved(snapshot))
        protection.on_restored = lambda snapshot, seconds: link.tell(Restored(snapshot, seconds))
        self._pulse.start()

    def hear(self, message: Call | Watch) -> None:
        """Take what the session asks, and return at once."""
        if isinstance(message, Watch):
            self._pulse.watch(message.period_s)
        else:
            self._orders.take(message, self._link.tell)
