"""What is lost between an interruption and a restore, as far as a session knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Snapshot
from jupyter_paddle_gpu.core.telemetry import KernelSample
from jupyter_paddle_gpu.core.wire import KernelSeen, Restored, Saved
from jupyter_paddle_gpu.server.news import TrainingNews


def snapshot(step: int | None) -> Snapshot:
    return Snapshot(Path(f"/s/00001-step-{step}"), step, 1, 0.1, Cause.PERIODIC, 0.0)


def lost(news: TrainingNews) -> int | None:
    assert news.restored is not None
    return news.restored.lost_steps


def test_what_was_made_since_the_snapshot_is_lost_with_the_kernel() -> None:
    news = TrainingNews()
    assert news.hear(Saved(snapshot(100)), 1)
    assert not news.hear(KernelSeen(KernelSample(2, step=130)), 2)
    news.interrupted()
    assert news.hear(Restored(snapshot(100), 0.5), 3)
    assert lost(news) == 30
    assert news.hear(Restored(snapshot(100), 0.5), 4)
    assert lost(news) is None, "nobody was interrupted: somebody has asked for it"


def test_nothing_is_lost_where_the_last_save_was_made_on_the_notice() -> None:
    news = TrainingNews()
    news.hear(KernelSeen(KernelSample(1, step=130)), 1)
    news.hear(Saved(snapshot(131)), 2)
    news.interrupted()
    news.hear(Restored(snapshot(131), 0.5), 3)
    assert lost(news) == 0


@pytest.mark.parametrize(("seen", "restored"), [(None, 5), (5, None)])
def test_what_is_not_known_is_not_zero(seen: int | None, restored: int | None) -> None:
    news = TrainingNews()
    news.hear(KernelSeen(KernelSample(1, step=seen)), 1)
    news.interrupted()
    news.hear(Restored(snapshot(restored), 0.5), 3)
    assert lost(news) is None
