"""The ranks of one training, seen from one of them: who wishes a snapshot gets it from all, together."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_paddle_gpu.core.notice import EvictionNotice
from jupyter_paddle_gpu.core.ranks import World
from jupyter_paddle_gpu.kernel.company.company import Company
from jupyter_paddle_gpu.kernel.company.following import Following
from jupyter_paddle_gpu.kernel.company.leading import Leading
from jupyter_paddle_gpu.kernel.protection import Protection

__all__ = ["Company", "join"]


def join(world: World, protection: Protection, notice: Callable[[EvictionNotice], None]) -> None:
    """Let one of several ranks save with the others from now on; ``notice`` takes a notice that another rank has got.

    Repeatable. Raises StoreUnwritable.
    """
    if protection.company is not None:
        protection.company.stop()
    protection.company = (Leading if world.main else Following)(world, protection, notice)
    protection.use(protection.directory, protection.always_resume)
    protection.company.start()
