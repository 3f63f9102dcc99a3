"""The grace is too short for the state: what matters most comes first, and nothing that was saved is lost."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cases.programs import TRAINING, finished, said
from tests.kernel.test_script import script

# A large frozen part and a small trained one; the disk's rate is set, as a slow disk would have taught it.
FINE_TUNING = (
    TRAINING
    + """
import time
from jupyter_paddle_gpu.kernel.runtime import runtime
guard.install("backup", grace_s=2.0, every="off")
paddle.seed(3)
backbone = paddle.nn.Linear(1000, 1000)
for param in backbone.parameters(): param.stop_gradient = True
model = paddle.nn.Sequential(backbone, paddle.nn.Linear(1000, 1))
optimizer = paddle.optimizer.AdamW(0.01, parameters=[p for p in model.parameters() if not p.stop_gradient])
data = [paddle.randn([4, 1000]) for _ in range(40)]
losses = []
guard.keep(losses=losses)
for step, batch in guard.steps(data):
    if step == 20 and sys.argv[1:]:
        print("here", flush=True)
        time.sleep(60)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(float(loss).hex())
    runtime().protection.store.rate = RATE or None
    if step == 10 and EARLIER and not guard.snapshots():
        guard.save()
        runtime().protection.store.rate = RATE
print(losses)
"""
)


def program(rate: float, earlier: bool) -> str:
    return FINE_TUNING.replace("RATE", repr(rate)).replace("EARLIER", repr(earlier))


def evicted(place: Path, code: str) -> str:
    """Run the training until step 20, end it by SIGTERM, and return what it said."""
    with script(place, code.replace("sys.argv[1:]", "True")) as running:
        running.process.send_signal(signal.SIGTERM)
        _, said_at_the_end = running.process.communicate(timeout=60)
        assert running.process.returncode == 143, said_at_the_end
    return str(said_at_the_end)


def test_what_trains_is_saved_where_not_all_fits_and_the_resume_is_exact(place: Path) -> None:
    """4 MB of frozen weights at 1 MB/s do not fit two seconds; 20 kB that train do [adaptdl#70]."""
    undisturbed = said(place, program(0, False).replace('"backup"', '"other"'))
    assert "saved" in evicted(place, program(1e6, False))
    (snapshot,) = (place / "backup").glob("0*")
    assert sum(file.stat().st_size for file in snapshot.iterdir()) < 500_000
    after = finished(place, program(0, False))
    assert after.stdout == undisturbed, after.stderr
    assert "restored" in after.stderr


@pytest.mark.parametrize("again", [1, 2])
def test_an_earlier_snapshot_stays_where_nothing_fits_and_the_loss_is_told(place: Path, again: int) -> None:
    code = program(1e3, True)
    for _ in range(again):
        text = evicted(place, code)
    assert "updates since the last snapshot are lost" in text
    assert "is the newest snapshot" in text
    undisturbed = said(place, program(0, False).replace('"backup"', '"other"'))
    assert finished(place, program(0, False)).stdout == undisturbed


def test_without_an_earlier_snapshot_it_is_tried_all_the_same(place: Path) -> None:
    """The prediction may be wrong, and there is nothing to lose."""
    assert "saved" in evicted(place, program(1e3, False))
    assert len(list((place / "backup").glob("0*"))) == 1


def test_the_next_snapshot_holds_the_frozen_weights_again(place: Path) -> None:
    evicted(place, program(1e6, False))
    finished(place, program(0, False) + "guard.save()\n")
    text = said(
        place,
        "from jupyter_paddle_gpu import guard\nguard.install('backup')\n"
        "print([(s.nbytes > 4_000_000, any('weights that do not train' in t for t in s.inexact)) "
        "for s in guard.snapshots()])",
    )
    assert text == "[(True, False), (False, True)]\n"
