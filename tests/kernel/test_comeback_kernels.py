"""A kernel that comes back after an eviction goes on by itself; a fresh one is only told what there is."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.agentspec import ENV_SESSION
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import EXIT_EVICTED, Served
from tests.kernel.conftest import agent_end
from tests.kernel.kernels import Notebook, notebook

KEEP = "from jupyter_paddle_gpu import guard\nbest = [{value}]\nguard.keep(best=best)"
LOOP = "for step, batch in guard.steps([1, 2]): pass\nprint('best', best)"


@pytest.fixture
def environ(place: Path) -> dict[str, str]:
    """One notebook."""
    return {"JPY_SESSION_NAME": str(place / "训练 1.ipynb"), ENV_SESSION: "s1"}


def evict(place: Path, environ: dict[str, str], *cells: str, cause: Cause = Cause.PREEMPTED) -> Served:
    """Run cells in a new kernel, evict it, and return its answer."""
    with agent_end() as agent, notebook(place, agent, environ) as opened:
        for cell in cells:
            opened.good(cell)
        agent.notice(cause)
        served = agent.wait(Served)
        assert opened.exit_code() == EXIT_EVICTED
    return served


def later(place: Path, environ: dict[str, str]) -> Iterator[Notebook]:
    with agent_end() as agent, notebook(place, agent, environ) as opened:
        yield opened


def test_the_same_session_goes_on_by_itself(place: Path, environ: dict[str, str]) -> None:
    evict(place, environ, KEEP.format(value=7))
    for opened in later(place, environ):
        text = opened.good(KEEP.format(value=0) + "\n" + LOOP)
        assert "restored" in text
        assert "best [7]" in text
        assert "restored" not in opened.good(LOOP)
        opened.manager.restart_kernel(now=True)
        opened.client.wait_for_ready(timeout=60)
        assert "best [0]" in opened.good(KEEP.format(value=0) + "\n" + LOOP)  # a restart by hand begins anew


def test_a_fresh_run_is_told_and_restores_only_when_asked(place: Path, environ: dict[str, str]) -> None:
    evict(place, environ, KEEP.format(value=7))
    for opened in later(place, {**environ, ENV_SESSION: "s2"}):
        text = opened.good(KEEP.format(value=0) + "\n" + LOOP)
        assert "best [0]" in text
        assert text.count("found (") == 1
        assert "ago); %paddle_gpu restore uses it" in text
        assert "found (" not in opened.good(LOOP)
        opened.good("guard.restore()")
        assert opened.good("print(best)") == "[7]\n"


def test_evicted_again_before_the_restore_the_first_snapshot_stays_the_newest(
    place: Path, environ: dict[str, str]
) -> None:
    first = evict(place, environ, KEEP.format(value=7))
    second = evict(place, environ, KEEP.format(value=0))
    assert second.outcome is SaveOutcome.SAVED
    assert second.snapshot == first.snapshot
    assert "not restored yet" in second.detail
    for opened in later(place, environ):
        assert "best [7]" in opened.good(KEEP.format(value=0) + "\n" + LOOP)


FULL = (
    "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\nmore = 'x' * 99999; guard.keep(more=more)"
)


def test_after_a_save_that_failed_it_goes_on_from_the_one_before(place: Path, environ: dict[str, str]) -> None:
    """The disk fills up in the save of the eviction itself: the previous snapshot of this run is used, not none."""
    served = evict(place, environ, KEEP.format(value=7), "guard.save()", FULL)
    assert served.outcome is SaveOutcome.FAILED
    assert "File too large" in served.detail
    for opened in later(place, environ):
        assert "best [7]" in opened.good(KEEP.format(value=0) + "\n" + LOOP)


def test_after_a_save_that_did_not_end_in_time_it_goes_on_from_the_one_before(
    place: Path, environ: dict[str, str]
) -> None:
    """The state does not fit the grace: SIGKILL comes in the middle of its save [adaptdl#70]."""
    with agent_end() as agent, notebook(place, agent, environ) as opened:
        opened.good(KEEP.format(value=7))
        first = opened.good("print(guard.save().path.parent)").strip()
        opened.good("import numpy as np; big = np.zeros(10**9, 'uint8'); guard.keep(big=big)")
        agent.notice()
        end_s = time.monotonic() + 20
        while not list(Path(first).glob("000002-*")) and time.monotonic() < end_s:
            time.sleep(0.01)
        os.kill(opened.pid, signal.SIGKILL)
    assert not list(Path(first).glob("000002-*/manifest.json"))
    for again in later(place, environ):
        assert "best [7]" in again.good(KEEP.format(value=0) + "\n" + LOOP)


def test_after_a_save_that_failed_it_does_not_go_on_from_another_run(place: Path, environ: dict[str, str]) -> None:
    with agent_end() as agent, notebook(place, agent, environ) as opened:
        opened.good(KEEP.format(value=7))
        opened.good("guard.save()")
        opened.manager.restart_kernel(now=True)  # the user begins anew
        opened.client.wait_for_ready(timeout=60)
        opened.good(KEEP.format(value=1))
        opened.good(FULL)
        agent.notice()
        assert agent.wait(Served).outcome is SaveOutcome.FAILED
    for again in later(place, environ):
        assert "best [0]" in again.good(KEEP.format(value=0) + "\n" + LOOP)


@pytest.mark.parametrize("cause", [Cause.SHUTDOWN])
def test_after_a_shutdown_nothing_goes_on_by_itself(place: Path, environ: dict[str, str], cause: Cause) -> None:
    evict(place, environ, KEEP.format(value=7), cause=cause)
    for opened in later(place, environ):
        assert "best [0]" in opened.good(KEEP.format(value=0) + "\n" + LOOP)
