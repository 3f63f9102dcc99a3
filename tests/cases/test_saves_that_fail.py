"""A save that fails, is killed or interrupted: the training goes on, and the previous snapshot is there."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.cases.programs import TRAINING, finished, said
from tests.kernel.kernels import notebook
from tests.kernel.test_script import script

INSTALLED = TRAINING + "guard.install('backup')\npaddle.seed(1)\nmodel, optimizer = build()\n"


def test_a_training_goes_on_after_a_save_that_found_no_room(place: Path) -> None:
    """The quota is reached in the middle of a file; a plain save leaves half a file [Lightning#19970]."""
    code = INSTALLED + (
        "losses = train(model, optimizer, 2)\nfirst = guard.save()\n"
        "if sys.argv[1:]:\n"
        "    import resource, signal\n"
        "    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        "    try: guard.save()\n"
        "    except Exception as error: print(type(error).__name__, error, file=sys.stderr)\n"
        "    assert guard.snapshots() == (first,)\n"
        "print(losses + train(model, optimizer, 5))\n"
    )
    undisturbed = said(place, code)
    disturbed = finished(place, code.replace("backup", "other"), "quota")
    assert disturbed.stdout == undisturbed, disturbed.stderr
    assert re.search(r"StoreUnwritable .*File too large", disturbed.stderr)


def test_a_training_goes_on_after_a_save_that_broke_while_it_looked(place: Path) -> None:
    """Whatever goes wrong between the gate's taking and the file's first byte: the next update does not wait for it."""
    text = said(
        place,
        INSTALLED + "train(model, optimizer, 1)\n"
        "from jupyter_paddle_gpu.kernel.runtime import runtime\nkept = runtime().training.kept\n"
        "def broken(): raise MemoryError('no room for a copy')\n"
        "whole, kept.encode = kept.encode, broken\n"
        "try: guard.save()\nexcept MemoryError as error: print(error)\n"
        "kept.encode = whole\ntrain(model, optimizer, 1)\nprint(guard.save().cause.value)\n",
    )
    assert text == "no room for a copy\nmanual\n"


def test_a_killed_training_goes_on_from_its_last_snapshot(place: Path) -> None:
    """An out-of-memory kill sends no SIGTERM [tofu-controller#481, kubernetes#137624]."""
    code = INSTALLED + (
        "losses = []\nguard.keep(losses=losses)\n"
        "for step, batch in guard.steps(list(range(8))):\n"
        "    losses += train(model, optimizer, 1)\n"
        "    if step == 3: guard.save()\n"
        "    if step == 5 and sys.argv[1:]: print('here', flush=True); import time; time.sleep(60)\n"
        "print(losses)\n"
    )
    undisturbed = said(place, code.replace("backup", "other"))
    with script(place, code.replace("sys.argv[1:]", "True")) as running:
        running.process.send_signal(signal.SIGKILL)
        running.process.communicate()
    after = finished(place, code)
    assert "step 4 restored" in after.stderr
    assert after.stdout == undisturbed


def test_a_save_that_had_just_begun_is_not_resumed_from(place: Path) -> None:
    """The newest directory is there, its tensors too, its manifest not yet [transformers#35782]."""
    code = "from jupyter_paddle_gpu import guard\nguard.install('backup')\nbest = []\nguard.keep(best=best)\n"
    said(place, code + "best.append(7)\nguard.save()")
    begun = place / "backup" / "000002-step-9"
    begun.mkdir()
    (whole,) = (place / "backup").glob("000001-*")
    (begun / "tensors.safetensors").write_bytes((whole / "tensors.safetensors").read_bytes())
    done = finished(place, code + "for _ in guard.steps([1]): pass\nprint(best, len(guard.snapshots()))")
    assert done.stdout == "[7] 1\n", done.stderr


def test_a_broken_newest_snapshot_is_named_to_the_user_and_the_one_before_is_used(place: Path) -> None:
    """Power went after the rename and before the tensors were on the disk [Paddle#40686, PaddleOCR#3145]."""
    code = "from jupyter_paddle_gpu import guard\nguard.install('backup')\nbest = []\nguard.keep(best=best)\n"
    said(place, code + "best.append(7)\nguard.save()\nbest.append(8)\nguard.save()")
    newest = max((place / "backup").glob("*-state"))
    file = newest / "manifest.json"
    file.write_bytes(file.read_bytes()[:-40])
    done = finished(place, code + "for _ in guard.steps([1]): pass\nprint(best)")
    assert done.stdout == "[7]\n", done.stderr
    assert newest.name in done.stderr


@pytest.mark.parametrize("restart", ["by hand", "after a kill"])
def test_a_kernel_restarted_in_the_middle_of_a_save_leaves_whole_snapshots(place: Path, restart: str) -> None:
    """The user restarts a busy kernel, or its process is killed, while it writes [ipykernel#462]."""
    with notebook(place) as opened:
        opened.good("import numpy as np\nfrom jupyter_paddle_gpu import guard\nsmall = [1]\nguard.keep(small=small)")
        opened.good("guard.save()\nbig = np.zeros(300_000_000, 'uint8'); guard.keep(big=big)")
        cell = opened.begin("print('here', flush=True)\nfor _ in range(99): guard.save()")
        opened.read(lambda: "here" in cell.text)
        opened.manager.restart_kernel(now=restart == "after a kill")
        opened.client.wait_for_ready(timeout=60)
        opened.good("from jupyter_paddle_gpu import guard\nsmall = []\nused = guard.restore()\nguard.keep(small=small)")
        assert opened.good("print(small, used == guard.snapshots()[0])") == "[1] True\n"
