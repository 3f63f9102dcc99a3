"""Where PaddlePaddle is not installed everything loads, keeps and saves what is kept, and says what a restore needs."""

from __future__ import annotations

from pathlib import Path

from tests.cases.programs import TRAINING, said

BLOCKED = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = staticmethod(lambda name, *rest: None if name.split(".")[0] == "paddle" else find(name, *rest))
"""
HEAD = "from jupyter_paddle_gpu import guard\nguard.install('backup')\n"


def test_what_is_kept_is_saved_and_comes_back(place: Path) -> None:
    loop = "best = [0]\nguard.keep(best=best)\nfor step, item in guard.steps([1, 2]): best[0] += item\n"
    assert said(place, BLOCKED + HEAD + loop + "guard.save(); guard.drill()\nprint(best)") == "[3]\n"
    assert said(place, BLOCKED + HEAD + loop.replace("[0]\n", "[9]\n") + "print(best)") == "[3]\n"


def test_a_training_s_snapshot_says_what_is_missing(place: Path) -> None:
    said(place, TRAINING + "guard.install('backup')\nm, o = build()\ntrain(m, o, 1)\nguard.save()")
    text = said(place, BLOCKED + HEAD + "try: guard.restore()\nexcept Exception as e: print(type(e).__name__, e)")
    assert text.startswith("PaddleMissing The snapshot holds a Paddle training, and PaddlePaddle is not installed")
    assert "pip install 'jupyter-paddle-gpu[cpu]'" in text
    text = said(place, HEAD + "try: guard.restore()\nexcept Exception as e: print(type(e).__name__, e)")
    assert text == "PaddleMissing The snapshot holds a Paddle training, and paddle is not imported. import paddle\n"
