"""A resumed training gives the losses of one that was never interrupted, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.checkpoint.harness import KINDS, Job, Pace, Result, choose, run


def photographed(job: Job) -> Result:
    """Run it with pictures; on a quick machine it may be over before the first one: then they come closer."""
    for closer in (1, 3, 10, 30):
        whole = run(replace(job, every_s=job.every_s / closer))
        if whole.snapshots:
            return whole
    raise AssertionError("no picture was taken")


def check(job: Job, count: int) -> Result:
    """Photograph a training, resume some of the pictures, and compare every loss.

    The second one is resumed in a kernel with a past; the third one is photographed too, and resumed from there.
    """
    whole = photographed(job)
    for number, snapshot in enumerate(choose(whole.snapshots, count, job.seed)):
        resume = replace(job, resume=snapshot.path, before=number == 1, every_s=job.every_s if number == 2 else 0.0)
        resumed = run(resume)
        where = f"{job.kind} resumed at {snapshot.path.name} ({snapshot.inexact})"
        assert resumed.history == whole.history, where
        for second in choose(resumed.snapshots, 3, job.seed)[1:]:
            again = run(replace(job, resume=second.path, every_s=0.0))
            assert again.history == whole.history, f"{where}, and again at {second.path.name} ({second.inexact})"
    return whole


@pytest.mark.parametrize("kind", KINDS)
def test_resumed_losses_are_bit_equal(kind: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    seed = int(pytestconfig.getoption("--seed"))
    whole = check(Job(kind, tmp_path, Pace(), seed=seed), int(pytestconfig.getoption("--moments")))
    inexact = {text for snapshot in whole.snapshots for text in snapshot.inexact}
    assert all("drawn again" in text for text in inexact), inexact
