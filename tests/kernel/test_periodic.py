"""A training saves itself while it runs: exactly, at its time, and never in the way of a notice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint.training import Training
from jupyter_paddle_gpu.core.errors import SnapshotError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.snapshot import SaveOutcome, Served
from jupyter_paddle_gpu.kernel.periodic import Periodic
from jupyter_paddle_gpu.kernel.protection import Protection
from jupyter_paddle_gpu.kernel.rescue import Rescue
from tests.cases.programs import said
from tests.kernel.kernels import notebook
from tests.kernel.test_training_kernels import SETUP, STEPS

QUICK = "from jupyter_paddle_gpu.kernel import periodic; periodic.TICK_S = 0.05; periodic.MIN_EVERY_S = 0.1\n"


@pytest.fixture
def protection(tmp_path: Path) -> Protection:
    return Protection(Training(), tmp_path / "snapshots", "s1")


def _move(protection: Protection) -> None:
    protection.training.gate.moves += 1


def test_it_comes_when_its_time_is_over_and_only_where_something_moved(protection: Protection) -> None:
    periodic = Periodic(protection, lambda: 600.0)
    assert not periodic.due(0.0)
    _move(protection)
    assert not periodic.due(1000.0), "the time counts from the first step"
    assert not periodic.due(1599.0)
    assert periodic.due(1600.0)
    protection.saved_s = 1500.0
    assert not periodic.due(2099.0), "a snapshot for another reason counts"
    assert periodic.due(2100.0)


def test_none_are_made_where_they_are_off(protection: Protection) -> None:
    periodic = Periodic(protection, lambda: 0.0)
    _move(protection)
    assert not periodic.due(0.0)
    assert not periodic.due(1e9)
    assert periodic.interval_s() is None


def test_by_default_they_take_a_hundredth_of_the_time(protection: Protection, monkeypatch: pytest.MonkeyPatch) -> None:
    periodic = Periodic(protection, lambda: None)
    assert periodic.interval_s() == 60.0
    protection.open().rate = 1e6
    monkeypatch.setattr(protection.training, "nbytes", lambda: 10**7)
    assert periodic.interval_s() == pytest.approx(1000.0, rel=0.01)


def test_a_training_that_was_killed_goes_on_from_it(place: Path) -> None:
    """Out of memory, a lost node: no signal comes, and what it made by itself is there."""
    with notebook(place) as opened:
        opened.good(SETUP)
        undisturbed = opened.good(f"{STEPS % 0}\nprint('LOSSES', losses)").split("LOSSES ")[1]
    environ = {"JPY_SESSION_NAME": str(place / "train.ipynb")}
    with notebook(place, environ=environ) as opened:
        opened.good(f"{QUICK}from jupyter_paddle_gpu.kernel.runtime import runtime; runtime().every_s = 0.2")
        opened.good(SETUP)
        opened.begin(STEPS % 0.1)
        opened.read(lambda: any((place.parent / "snapshots").rglob("manifest.json")))
        opened.manager.shutdown_kernel(now=True)
    with notebook(place, environ=environ) as opened:
        opened.good(SETUP)
        causes, restored = opened.good(
            "print({s.cause.value for s in guard.snapshots()}); print(guard.restore().step)"
        ).splitlines()
        assert (causes, int(restored) > 0) == ("{'periodic'}", True)
        text = opened.good(f"{STEPS % 0}\nprint('LOSSES', losses)")
        assert f"step {int(restored) - 1}\n" not in text
        assert text.split("LOSSES ")[1] == undisturbed


def test_one_that_fails_is_told_and_tried_again(place: Path) -> None:
    text = said(
        place,
        QUICK + SETUP + "import logging, pathlib, shutil\nlogging.basicConfig()\n"
        "guard.install('backup')\npathlib.Path('backup').rmdir()\npathlib.Path('backup').write_text('no directory')\n"
        "from jupyter_paddle_gpu.kernel.runtime import runtime; runtime().every_s = 0.1\n"
        "def train_until(done):\n"
        "    for step, batch in guard.steps(data, epochs=1000):\n"
        "        train_step(batch); time.sleep(0.01)\n"
        "        if done(): return True\n"
        "print(train_until(lambda: runtime().periodic.fault))\n"
        "print(guard.status().periodic_fault)\n"
        "pathlib.Path('backup').unlink()\n"
        "print(train_until(lambda: runtime().periodic.fault is None and guard.snapshots()))\n",
    )
    assert re.match(r"True\nNo snapshot could be written to .*\nTrue\n", text)


def test_a_notice_with_time_for_one_save_takes_the_one_that_has_just_ended(protection: Protection) -> None:
    protection.training.keep(best=1.0)
    _move(protection)
    snapshot = protection.save(Cause.PERIODIC)
    protection.store.rate = 1.0
    told: list[Served] = []
    notice = EvictionNotice(Cause.PREEMPTED, 10.0)
    served = Rescue(protection).save_for(notice, 1e-9, told.append)
    assert (served.outcome, served.snapshot) == (SaveOutcome.SAVED, snapshot.path)
    assert told == [served]
    assert len(protection.store.list()) == 1


def test_a_played_eviction_counts_for_no_snapshot(protection: Protection) -> None:
    protection.training.keep(best=1.0)
    older = protection.save(Cause.MANUAL)
    _move(protection)
    with protection.alone(1.0), protection.saving(Cause.DRILL, 1.0) as (_, played):
        protection.store.delete(played)
    assert protection.moved(), "what was trained since would be lost at a shutdown"
    assert protection.last == older
    protection.store.rate = 1.0
    with pytest.raises(SnapshotError, match="1 update since the last snapshot are lost"):
        Rescue(protection).save_for(EvictionNotice(Cause.PREEMPTED, 10.0), 1.0, lambda served: None)


def test_what_is_kept_and_has_changed_since_is_saved_with_little_time_too(protection: Protection) -> None:
    best = [1.0]
    protection.training.keep(best=best)
    older = protection.save(Cause.MANUAL)
    protection.saved_s -= 60.0
    best[0] = 2.0
    protection.store.rate = 1.0
    served = Rescue(protection).save_for(EvictionNotice(Cause.PREEMPTED, 10.0), 1.0, lambda served: None)
    assert served.snapshot != older.path


def test_a_grace_that_is_too_short_is_told_before_any_eviction(place: Path) -> None:
    """The state does not fit the grace: known when a first save has shown how long it takes [adaptdl#70]."""
    big = "import numpy as np; big = np.zeros(200_000_000, 'uint8'); guard.keep(big=big)\n"
    with notebook(place) as opened:
        assert "too short" not in opened.good(f"from jupyter_paddle_gpu import guard\n{big}guard.install(grace_s=30)")
        assert "too short" not in opened.good("guard.save(); 0")
        opened.good("guard.install(grace_s=0.01)")
        said = opened.good("guard.save(); 0")
        assert re.search(r"A grace of .* is too short for a save of 200 MB .*--grace \d+s would do", said)
        assert "too short" not in opened.good("guard.save(); 0")
    text = said_in_a_loop(place)
    assert text.count("too short") == 1
    assert text.index("too short") < text.index("END"), "while the loop runs, not after it"


def said_in_a_loop(place: Path) -> str:
    """Return what a long cell with a loop says while it runs."""
    with notebook(place) as opened:
        return opened.good(
            SETUP + "import numpy as np; big = np.zeros(200_000_000, 'uint8'); guard.keep(big=big)\n"
            "guard.install(grace_s=0.01)\nimport time\n"
            "for step, batch in guard.steps([1, 2, 3]):\n    if step == 0: guard.save()\n    time.sleep(1.1)\n"
            "print('END')"
        )
