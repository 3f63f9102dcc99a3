"""The sentence that the cell of an evicted kernel ends with."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.evicted import sentence, what_was_saved
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome, Served


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (Served(SaveOutcome.SAVED, Path("s"), 1200), "step 1200 saved"),
        (Served(SaveOutcome.SAVED, Path("s"), detail="kept values saved"), "kept values saved"),
        (Served(SaveOutcome.SAVED, Path("s")), "state saved"),
        (Served(SaveOutcome.NOTHING), "nothing to save"),
        (Served(SaveOutcome.FAILED, detail="The disk is full."), "nothing saved: The disk is full (step 9 is newest)"),
    ],
)
def test_it_says_what_was_saved(served: Served, text: str) -> None:
    assert what_was_saved(served, "step 9 is newest") == text


@pytest.mark.parametrize(
    ("notice", "cpu", "comes_back", "text"),
    [
        (EvictionNotice(Cause.PREEMPTED, 30.0, position=2), False, True, "waiting for a GPU, position 2"),
        (EvictionNotice(Cause.PREEMPTED, 30.0), True, True, "waiting for the CPU slot"),
        (EvictionNotice(Cause.SIGTERM, 30.0), False, False, "ended by SIGTERM"),
        (EvictionNotice(Cause.RELEASED, 30.0, position=1), False, True, "the GPU was given back"),
        (EvictionNotice(Cause.SERVER_GONE, 30.0), False, True, "ended because its Jupyter server has gone"),
    ],
)
def test_it_says_what_comes_next(notice: EvictionNotice, cpu: bool, comes_back: bool, text: str) -> None:
    assert sentence("step 7 saved", notice, cpu, comes_back) == f"step 7 saved, {text}"
