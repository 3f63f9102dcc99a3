"""SIGKILL at any moment of a save: what was finished is there, what was begun is cleaned, what lives is left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint.state import State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position

ROOT = Path(__file__).parents[2]

# Forks a saver, kills it at a random moment of its saves, and looks at what is left. Small, so that kills are quick.
DRIVER = """
import os, pathlib, random, select, signal, sys
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Position

directory, kills = pathlib.Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(int(sys.argv[3]))

def state(step):
    return State({"w": RawTensor("U8", (2**20,), memoryview(bytes([step % 256]) * 2**20))}, {"step": step})

def save_on(step, told):
    while True:
        step += 1
        Store(directory).save(state(step), position=Position(step, 0, 0), cause=Cause.MANUAL)
        os.write(told, step.to_bytes(8, "little"))

told_in_all, stray = 0, 0
for _ in range(kills):
    hear, tell = os.pipe()
    child = os.fork()
    if child == 0:
        save_on(told_in_all, tell)
    os.close(tell)
    for _ in range(chance.randrange(1, 4)):
        told_in_all = int.from_bytes(os.read(hear, 8), "little")
    select.select([], [], [], chance.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while word := os.read(hear, 8):
        told_in_all = int.from_bytes(word, "little")
    os.close(hear)
    stray += any(not (place / "manifest.json").exists() for place in directory.iterdir())
    for listed in Store(directory).list():
        Store(directory).verify(listed)  # what is listed is whole, not only the newest
    snapshot, loaded = Store(directory).load()
    assert snapshot.step in (told_in_all, told_in_all + 1), (snapshot.step, told_in_all)
    assert bytes(loaded.tensors["w"].data) == bytes(state(snapshot.step).tensors["w"].data)
    told_in_all = snapshot.step
print(stray)
"""


def test_a_kill_at_any_moment_leaves_the_newest_finished_snapshot(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    kills = int(pytestconfig.getoption("--kills"))
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(kills), "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > kills // 10, "the kills missed the saves: nothing was tried"
    Store(tmp_path).save(Store(tmp_path).load()[1], position=None, cause=Cause.MANUAL)
    left = [place for place in tmp_path.iterdir() if not (place / "manifest.json").exists()]
    assert [file for place in left for file in place.iterdir() if file.stat().st_size] == []


# Writes until the byte that is given, says so, and waits there for its end.
HALF_A_SAVE = """
import pathlib, sys
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.notice import Cause

def stop(written):
    print("half", flush=True)
    sys.stdin.readline()

tensors = {"w": RawTensor("U8", (1000,), memoryview(bytes(1000)))}
Store(pathlib.Path(sys.argv[1])).save(State(tensors, {}), position=None, cause=Cause.MANUAL, progress=stop)
"""


@pytest.fixture
def half_a_save(tmp_path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_A_SAVE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout
    assert process.stdout.readline() == "half\n"
    return process


def small_save(directory: Path, step: int) -> str:
    state = State({}, {"step": step})
    return Store(directory, keep=1).save(state, position=Position(step, 0, 0), cause=Cause.MANUAL).path.name


def test_a_save_of_a_living_process_is_left_alone_and_of_a_dead_one_removed(
    tmp_path: Path, half_a_save: subprocess.Popen[str]
) -> None:
    assert small_save(tmp_path, 5) == "000002-step-5"
    assert sorted(place.name for place in tmp_path.iterdir()) == ["000001-state", "000002-step-5"]
    half_a_save.kill()
    half_a_save.communicate()
    small_save(tmp_path, 6)
    assert [place.name for place in tmp_path.iterdir()] == ["000003-step-6"]


def test_a_living_process_ends_its_save_after_others_have_saved(
    tmp_path: Path, half_a_save: subprocess.Popen[str]
) -> None:
    small_save(tmp_path, 5)
    half_a_save.communicate("go on\n")
    assert half_a_save.returncode == 0
    assert [snapshot.path.name for snapshot in Store(tmp_path).list()] == ["000002-step-5", "000001-state"]
    for snapshot in Store(tmp_path).list():
        Store(tmp_path).verify(snapshot)
