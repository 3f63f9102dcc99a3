"""Notices that come while the kernel is in the middle of something else, or beside other listeners for SIGTERM."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.agentspec import ENV_SESSION
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import EXIT_EVICTED, Served
from tests.cases.programs import TRAINING
from tests.kernel.conftest import agent_end
from tests.kernel.kernels import AgentEnd, Cell, Notebook, notebook
from tests.kernel.test_script import HEAD, INSTALL, evicted

KEEP = "from jupyter_paddle_gpu import guard; guard.keep(best=0.5)"


def _has_said(cell: Cell, text: str) -> bool:
    return text in cell.text


LOCKS = {  # the first two are never held for long; the others are not given back
    "the log's": "import logging; logging._lock.acquire(); time.sleep(1); logging._lock.release()",
    "an import's": "import _imp; _imp.acquire_lock(); time.sleep(1); _imp.release_lock()",
    "its handler's": "import logging; logging.basicConfig(); logging.root.handlers[0].acquire()",
    "a module's": (
        "import importlib._bootstrap as b\nfor m in ('paddle', 'numpy', 'safetensors'): b._get_module_lock(m).acquire()"
    ),
    "print's": """
import threading
lock = threading.Lock()
class Held:
    def write(self, text): self.flush()
    def flush(self):
        with lock: pass
sys.stdout = Held()
lock.acquire()
""",
}


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS.keys())
def test_sigterm_while_the_main_thread_holds_a_lock(place: Path, lock: str) -> None:
    """A save inside of the handler waits for a lock that the interrupted code holds, for ever [Lightning#21406]."""
    evicted(place, HEAD + INSTALL + f"print('here', flush=True)\n{lock}\ntime.sleep(60)")


def test_a_handler_of_the_notebook_is_called_after_the_save(place: Path) -> None:
    """A handler that was there before the extension was loaded [Lightning#1455]."""
    with notebook(place, module="ipykernel_launcher") as opened:
        opened.good(
            "import pathlib, signal\nfrom jupyter_paddle_gpu import guard\n"
            "def own(*_): pathlib.Path('own').write_text(str(len(guard.snapshots())))\n"
            "signal.signal(signal.SIGTERM, own)"
        )
        opened.good(f"%load_ext jupyter_paddle_gpu\n{KEEP}")
        os.kill(opened.pid, signal.SIGTERM)
        assert opened.exit_code() == EXIT_EVICTED
    assert (place / "own").read_text() == "1"


def test_a_library_that_swallows_signals_in_the_notebook(evictable: Notebook, agent: AgentEnd) -> None:
    """PaddleFormers' logger replaces the handlers of SIGTERM and SIGINT; Kubernetes' SIGTERM is served all the same."""
    evictable.good(KEEP)
    evictable.good("import signal, time\nfor s in (signal.SIGTERM, signal.SIGINT): signal.signal(s, lambda *_: None)")
    running = evictable.begin("print('here', flush=True); time.sleep(600)")
    evictable.read(lambda: "here" in running.text)
    os.kill(evictable.pid, signal.SIGTERM)
    evictable.end(running)
    assert running.error.startswith("Evicted: kept values saved")
    assert agent.wait(Served).outcome is SaveOutcome.SAVED


def test_no_time_to_save_is_no_exception(evictable: Notebook, agent: AgentEnd, place: Path) -> None:
    """A Pod that is deleted with grace 0 [k8s-node-termination-handler#27]."""
    evictable.good(KEEP)
    running = evictable.begin("print('here', flush=True); import time; time.sleep(600)")
    evictable.read(lambda: "here" in running.text)
    agent.notice(remaining_s=0.0)
    assert evictable.exit_code() == EXIT_EVICTED
    for left in (place.parent / "snapshots").glob("*/*"):
        assert left.is_file() or (left / "manifest.json").exists() or not any(p.stat().st_size for p in left.iterdir())


def test_evicted_again_in_the_middle_of_the_restore(place: Path) -> None:
    """Two evictions within a minute, the second while the first one's snapshot is being loaded."""
    environ = {"JPY_SESSION_NAME": str(place / "train.ipynb"), ENV_SESSION: "s1"}
    setup = TRAINING + "paddle.seed(1)\nmodel, optimizer = build()\nlosses = []\nguard.keep(losses=losses)\n"
    loop = "for step, batch in guard.steps(list(range(6))):\n    losses += train(model, optimizer, 1)\n"
    halfway = (
        "import time\nfrom jupyter_paddle_gpu.checkpoint.capture import optimizers\n"
        "def stuck(*_):\n    print('half', flush=True)\n    time.sleep(600)\noptimizers.restore = stuck\n"
    )
    served = []
    for before, until in (("", None), (halfway, "half")):
        with agent_end() as agent, notebook(place, agent, environ) as opened:
            opened.good(setup + before)
            stop = "    if step == 2: print('here', flush=True); import time; time.sleep(600)\n"
            running = opened.begin(loop + stop)
            opened.read(partial(_has_said, running, until or "here"))
            agent.notice(remaining_s=3.0)
            served.append(agent.wait(Served))
            opened.end(running)
            assert opened.exit_code() == EXIT_EVICTED
    assert served[1].snapshot == served[0].snapshot
    with notebook(place) as opened:
        opened.good(setup)
        opened.good(loop)
        undisturbed = opened.good("print(losses)")
    with agent_end() as agent, notebook(place, agent, environ) as opened:
        opened.good(setup)
        assert "restored" in opened.good(loop)
        assert opened.good("print(losses)") == undisturbed


MOMENTS = {
    "before the first step": "print('here', flush=True); time.sleep(1)\n",
    "while the data is loaded": "slow = {9}\n",
    "at the first compilation": "model = paddle.jit.to_static(model)\n",
    "in an evaluation": "evaluate = True\n",
}
EXACT_SETUP = (
    TRAINING
    + """
import time
class Data(paddle.io.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i):
        if i in slow: print('here', flush=True); time.sleep(1)
        return (np.full([4], i, 'float32') + np.random.rand(4).astype('float32'))
slow, evaluate, losses = set(), False, []
paddle.seed(1); np.random.seed(1)
model, optimizer = build()
guard.keep(losses=losses)
loader = paddle.io.DataLoader(Data(), batch_size=4, shuffle=True)
"""
)
EXACT_LOOP = """
for step, batch in guard.steps(loader, epochs=2):
    if step == 0 and first: print('here', flush=True); time.sleep(0.5)
    loss = model(batch).square().mean()
    loss.backward(); optimizer.step(); optimizer.clear_grad()
    losses.append(float(loss).hex())
    if evaluate and step == 4:
        model.eval(); print('here', flush=True)
        with paddle.no_grad():
            for _ in range(20): model(paddle.randn([64, 4])); time.sleep(0.05)
        model.train()
"""


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS.keys())
def test_a_notice_at_an_odd_moment_is_exact_too(place: Path, moment: str) -> None:
    """Saving only at the end of a batch misses the warm-up, the evaluation and the compilation [spd#677, spd#741]."""
    environ = {"JPY_SESSION_NAME": str(place / "train.ipynb"), ENV_SESSION: "s1"}
    first = "static" in moment
    with agent_end() as agent, notebook(place, agent, environ) as opened:
        opened.good(EXACT_SETUP)
        running = opened.begin(f"first = {first}\n{moment}{EXACT_LOOP}")
        opened.read(partial(_has_said, running, "here"))
        agent.notice()
        opened.end(running)
        served = agent.wait(Served)
        assert opened.exit_code() == EXIT_EVICTED
    assert served.outcome in (SaveOutcome.SAVED, SaveOutcome.NOTHING)
    rest = moment if "here" not in moment else ""
    ends = []
    for session in ("s1", "undisturbed"):
        other = {**environ, ENV_SESSION: session}
        with agent_end() as agent, notebook(place, agent, other) as opened:
            opened.good(EXACT_SETUP)
            opened.good(f"first = {first}\n{rest}{EXACT_LOOP}")
            ends.append(opened.good("print(losses)"))
    assert ends[0] == ends[1]
