"""Real Paddle trainings in real kernels and scripts: evicted anywhere, back bit for bit."""

from __future__ import annotations

import os
import re
import signal
from functools import partial
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.agentspec import ENV_SESSION
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import EXIT_EVICTED, Served
from tests.kernel.conftest import agent_end
from tests.kernel.kernels import AgentEnd, Cell, Notebook, notebook
from tests.kernel.test_script import script

SETUP = """
import paddle, time
from jupyter_paddle_gpu import guard
paddle.seed(1)
data = [paddle.randn([8, 4]) for _ in range(20)]
model = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.Dropout(0.5), paddle.nn.Linear(8, 1))
optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
losses = []
guard.keep(losses=losses)
def train_step(batch):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(float(loss).hex())
"""
STEPS = """
for step, batch in guard.steps(data, epochs=2):
    train_step(batch)
    print("step", step, flush=True)
    time.sleep(%s)
"""
PLAIN_LOOP = """
while True:
    train_step(data[0])
    print("trained", flush=True)
    time.sleep(0.01)
"""


FIT = """
class Told(paddle.callbacks.Callback):
    def on_train_batch_end(self, step, logs=None):
        losses.append((step, float(logs["loss"][0]).hex()))
        print("step", len(losses), flush=True)
        time.sleep(%s)
whole = paddle.Model(model)
whole.prepare(optimizer, paddle.nn.MSELoss())
pairs = paddle.io.TensorDataset([paddle.concat(data), paddle.randn([160, 1])])
whole.fit(pairs, batch_size=8, epochs=2, verbose=0, callbacks=[Told()])
"""


def _has_said(cell: Cell, text: str) -> bool:
    return text in cell.text


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The losses of the training that nobody evicts."""
    place = tmp_path_factory.mktemp("undisturbed") / "work"
    place.mkdir()
    with notebook(place) as opened:
        opened.good(SETUP)
        opened.good(STEPS % 0)
        return opened.good("print(losses)")


@pytest.fixture
def environ(place: Path) -> dict[str, str]:
    return {"JPY_SESSION_NAME": str(place / "train.ipynb"), ENV_SESSION: "s1"}


def test_an_evicted_training_comes_back_and_ends_with_the_same_losses(
    place: Path, environ: dict[str, str], undisturbed: str
) -> None:
    saved = []
    for stop_after in ("step 5\n", "step 23\n"):
        with agent_end() as agent, notebook(place, agent, environ) as opened:
            opened.good(SETUP)
            running = opened.begin(STEPS % 0.05)
            opened.read(partial(_has_said, running, stop_after))
            agent.notice()
            opened.end(running)
            told = re.fullmatch(r"Evicted: step (\d+) saved, waiting for a GPU, position 2", running.error)
            assert told, running.error
            saved.append(int(told[1]))
            assert len(running.errors) == len(running.replies) == 1
            assert agent.wait(Served).step == saved[-1]
            assert opened.exit_code() == EXIT_EVICTED
    with agent_end() as agent, notebook(place, agent, environ) as opened:
        opened.good(SETUP)
        text = opened.good(STEPS % 0)
        assert f"step {saved[-1]} restored" in text
        assert f"step {saved[-1] - 1}\n" not in text
        assert opened.good("print(losses)") == undisturbed


def test_model_fit_comes_back_without_a_change(place: Path, environ: dict[str, str]) -> None:
    for stop_after in ("step 5\n", "step 23\n"):
        with agent_end() as agent, notebook(place, agent, environ) as opened:
            opened.good(SETUP)
            running = opened.begin(FIT % 0.05)
            opened.read(partial(_has_said, running, stop_after))
            agent.notice()
            opened.end(running)
            assert re.fullmatch(r"Evicted: step \d+ saved, waiting for a GPU, position 2", running.error)
            assert opened.exit_code() == EXIT_EVICTED
    ends = []
    for session in ("s1", "undisturbed"):
        with agent_end() as agent, notebook(place, agent, {**environ, ENV_SESSION: session}) as opened:
            opened.good(SETUP)
            text = opened.good(FIT % 0)
            assert ("step 23\n" in text) is (session == "undisturbed")
            ends.append(opened.good("print(losses)"))
    assert ends[0] == ends[1]


def test_a_long_paddle_call_is_no_obstacle(evictable: Notebook, agent: AgentEnd) -> None:
    evictable.good(SETUP)
    evictable.good("train_step(data[0])\nx = paddle.randn([3000, 3000])")
    running = evictable.begin("print('here', flush=True)\nfor _ in range(10**6): y = paddle.matmul(x, x)")
    evictable.read(lambda: "here" in running.text)
    agent.notice()
    evictable.end(running)
    assert running.error.startswith("Evicted: training saved, waiting for a GPU")
    assert agent.wait(Served).outcome is SaveOutcome.SAVED
    assert evictable.exit_code() == EXIT_EVICTED


def test_a_plain_loop_ends_at_its_next_update_with_its_own_cleaning_up(evictable: Notebook, agent: AgentEnd) -> None:
    evictable.good(SETUP)
    running = evictable.begin(
        f"try:\n{PLAIN_LOOP.replace(chr(10), chr(10) + '    ')}\nfinally:\n    print('cleaned up')"
    )
    evictable.read(lambda: "trained" in running.text)
    agent.notice()
    evictable.end(running)
    assert running.error.startswith("Evicted: training saved")
    assert "cleaned up" in running.text
    assert len(running.errors) == len(running.replies) == 1
    *where, said = running.errors[0]["traceback"]  # where the loop was; not Paddle's frames and ours
    assert where
    assert all(line.startswith("the cell was at line ") for line in where)
    assert said == f"Evicted: {running.errors[0]['evalue']}"


def test_a_script_trains_on_where_it_was_stopped(place: Path, undisturbed: str) -> None:
    head = "from jupyter_paddle_gpu import guard\nguard.install(directory='backup')\n"
    code = (
        head
        + SETUP
        + (STEPS % 0.05).replace('print("step"', 'print("here" if step % 20 == 7 else step) or print("step"')
    )
    for _ in range(2):
        with script(place, code) as running:
            running.process.send_signal(signal.SIGTERM)
            _, err = running.process.communicate(timeout=60)
        assert running.process.returncode == EXIT_EVICTED, err
        assert re.search(r"paddle-gpu: step \d+ saved, ended by SIGTERM", err), err
    with script(place, head + SETUP + STEPS % 0 + "print('LOSSES', losses)") as running:
        assert running.process.wait(60) == 0
    assert running.before[-1] == f"LOSSES {undisturbed.strip()}"


def test_an_interrupted_save_leaves_no_half_snapshot(place: Path, environ: dict[str, str]) -> None:
    with notebook(place, environ=environ) as opened:
        opened.good("import numpy as np\nfrom jupyter_paddle_gpu import guard\nguard.keep(small=1)\nguard.save()")
        opened.good("big = np.zeros(400_000_000, 'uint8'); guard.keep(big=big)")
        cell = opened.begin("print('here', flush=True)\nfor _ in range(99): guard.save()")
        opened.read(lambda: "here" in cell.text)
        os.kill(opened.pid, signal.SIGINT)
        opened.end(cell)
        assert cell.error.startswith("KeyboardInterrupt")
        opened.good("assert guard.restore() == guard.snapshots()[0]")
        directories = opened.good(
            "print(len(list(guard.status().directory.glob('*-*'))), len(guard.snapshots()))"
        ).split()
        assert directories[0] == directories[1]


def test_a_played_eviction_reads_back_what_it_wrote(place: Path) -> None:
    with notebook(place) as opened:
        opened.good(SETUP)
        opened.good(STEPS % 0)
        text = opened.good("report = guard.drill(); print(report.differences, report.fits, len(guard.snapshots()))")
        assert text == "() True 0\n"
