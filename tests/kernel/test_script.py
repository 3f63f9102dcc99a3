"""guard.install in a plain script: SIGTERM is heard whatever holds the signal, saved once, and ends with 143."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.wire import EXIT_EVICTED
from tests.cases.programs import finished, said

HEAD = """
import atexit, os, signal, sys, time
from jupyter_paddle_gpu import guard
"""
INSTALL = """
guard.install(directory="backup", grace_s=3)
guard.keep(best=0.5)
"""
REST = "print('here', flush=True); time.sleep(60)"


class Script:
    """A running script; ``before`` is what it printed until it said ``here``."""

    def __init__(self, place: Path, code: str) -> None:
        (place / "train.py").write_text(code)
        self.process = subprocess.Popen(
            [sys.executable, "train.py"], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.before: list[str] = []

    def wait(self) -> Script:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line == "here\n":
                break
            self.before.append(line.strip())
        return self


@contextmanager
def script(place: Path, code: str) -> Iterator[Script]:
    """Run a script until it says ``here``."""
    running = Script(place, code)
    try:
        yield running.wait()
    finally:
        running.process.kill()
        running.process.communicate()


def terminated(place: Path, code: str) -> tuple[int, str, str]:
    """Send SIGTERM to the script that has said ``here``; return its exit code and what it printed from then on."""
    with script(place, code) as running:
        running.process.terminate()
        out, err = running.process.communicate(timeout=30)
    return running.process.returncode, out, err


def evicted(place: Path, code: str) -> tuple[str, str]:
    """Send SIGTERM to the script and return what it printed; it has saved once and ended with 143."""
    exit_code, out, err = terminated(place, code)
    assert exit_code == EXIT_EVICTED, err
    assert err.count("kept values saved, ended by SIGTERM") == 1, err
    assert len([path for path in (place / "backup").iterdir() if path.is_dir()]) == 1
    return out, err


def test_sigterm_saves_and_the_scripts_own_exit_hooks_run(place: Path) -> None:
    code = HEAD + INSTALL + f"atexit.register(print, 'hook')\ntry:\n    {REST}\nfinally:\n    print('finally')"
    out, err = evicted(place, code)
    assert out == "finally\nhook\n"
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "rest",
    [
        "print('here', flush=True)\nwhile True: pass",
        "import hashlib; print('here', flush=True); hashlib.pbkdf2_hmac('sha512', b'x', b'y', 10**8)",
        "print('here', flush=True)\nwhile True:\n    try: time.sleep(9)\n    except BaseException: pass",
    ],
    ids=["a Python loop", "a long C call", "a loop that swallows everything"],
)
def test_sigterm_is_served_wherever_the_main_thread_is(place: Path, rest: str) -> None:
    evicted(place, HEAD + INSTALL + rest)


def test_what_cleans_up_on_the_way_out_is_not_disturbed(place: Path) -> None:
    training = """
import paddle
layer = paddle.nn.Linear(2, 2)
optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
try:
    for step, _ in guard.steps(range(10**6)):
        layer(paddle.ones([1, 2])).sum().backward()
        optimizer.step()
        if step == 5:
            print("here", flush=True)
finally:
    for _ in range(100):
        time.sleep(0.01)
    print("cleaned up")
"""
    exit_code, out, err = terminated(place, HEAD + INSTALL + training)
    assert exit_code == EXIT_EVICTED, err
    assert out == "cleaned up\n"
    assert "Traceback" not in err


def test_without_an_installation_sigterm_is_what_it_always_was(place: Path) -> None:
    code = "began_s, said = time.monotonic(), False\nfor step, _ in guard.steps(range(10**6)):\n    time.sleep(0.1)\n"
    code += "    if time.monotonic() - began_s > 1.5 and not said:\n        said = True; print('here', flush=True)"
    exit_code, _, err = terminated(place, HEAD + code)
    assert exit_code == -signal.SIGTERM, err


def test_the_users_own_handler_is_called_after_the_save(place: Path) -> None:
    own = "signal.signal(signal.SIGTERM, lambda *a: print('own, snapshots:', len(guard.snapshots()), flush=True))"
    out, _ = evicted(place, HEAD + own + INSTALL + REST)
    assert out == "own, snapshots: 1\n"


def test_an_event_loop_that_listens_for_sigterm_hears_it_beside_the_save(place: Path) -> None:
    """asyncio takes Python's handler and the wakeup descriptor, both [aiohttp's run_app does]."""
    loop = """
import asyncio
async def main():
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, print, 'theirs')
    await asyncio.sleep(1.5)
    print('here', flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    out, _ = evicted(place, HEAD + INSTALL + loop)
    assert out.splitlines()[0] == "theirs"


THIEVES = {
    "a library that swallows SIGTERM and SIGINT": """
for s in (signal.SIGTERM, signal.SIGINT): signal.signal(s, lambda *a: None)
""",
    "a library that ignores SIGTERM": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n",
    "a handler set below Python": """
import ctypes; ctypes.CDLL(None).signal(signal.SIGTERM, 1)
""",
}


@pytest.mark.parametrize("thief", THIEVES.values(), ids=THIEVES.keys())
def test_a_handler_stolen_later_is_no_obstacle(place: Path, thief: str) -> None:
    evicted(place, HEAD + INSTALL + thief + "time.sleep(1.5)\n" + REST)


def test_a_workers_sigterm_is_no_notice(place: Path) -> None:
    worker = """
for wait_s in (0, 0.1):
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    time.sleep(wait_s)
    os.kill(pid, signal.SIGTERM)
    print('worker ended by', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
time.sleep(0.3)
print('snapshots:', len(guard.snapshots()), flush=True)
"""
    with script(place, HEAD + INSTALL + worker + REST) as running:
        assert running.process.poll() is None
    assert running.before == ["worker ended by -15"] * 2 + ["snapshots: 0"]


def test_the_groups_sigterm_with_workers_saves_once(place: Path) -> None:
    workers = """
import multiprocessing
workers = [multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)) for _ in range(3)]
for worker in workers: worker.start()
"""
    with script(place, "import os; os.setsid()" + HEAD + INSTALL + workers + REST) as running:
        os.killpg(running.process.pid, signal.SIGTERM)
        _, err = running.process.communicate(timeout=30)
    assert running.process.returncode == EXIT_EVICTED
    assert err.count("saved, ended by SIGTERM") == 1


# Its workers end at once where the whole group gets SIGTERM, and Paddle raises for each of them in the main thread.
LOADER = """
import numpy as np
import paddle
class Data(paddle.io.Dataset):
    def __len__(self): return 100_000
    def __getitem__(self, i): return np.full([4], i, "float32")
if __name__ == "__main__":
    big = np.zeros(50_000_000, "uint8"); guard.keep(big=big)
    model = paddle.nn.Linear(4, 1)
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    for step, batch in guard.steps(paddle.io.DataLoader(Data(), batch_size=4, num_workers=3)):
        model(batch).mean().backward(); optimizer.step(); optimizer.clear_grad()
        if step == 9: print("here", flush=True)
        time.sleep(0.01)
"""


def test_the_groups_sigterm_with_a_loaders_workers_saves_once(place: Path) -> None:
    """Paddle's handler of SIGCHLD raised in the main thread, in the middle of the exit hooks too [Paddle#46870]."""
    with script(place, "import os; os.setsid()" + HEAD + INSTALL + LOADER) as running:
        os.killpg(running.process.pid, signal.SIGTERM)
        _, err = running.process.communicate(timeout=30)
    assert running.process.returncode == EXIT_EVICTED, err
    assert err.count("saved, ended by SIGTERM") == 1
    assert "SystemError" not in err


def test_a_worker_that_is_killed_without_a_notice_is_paddles_error_as_ever(place: Path) -> None:
    kill = "        if step == 20: import psutil; psutil.Process().children()[-1].kill()\n"
    done = finished(place, HEAD + INSTALL + LOADER + kill)
    assert done.returncode == 1
    assert "exited is killed by signal: Killed" in done.stderr or "exited unexpectedly" in done.stderr


def test_workers_that_import_the_script_once_more_save_nothing(place: Path) -> None:
    """multiprocessing's spawn runs the top of the script in each worker; all get the group's SIGTERM."""
    workers = """
import multiprocessing
if __name__ == "__main__":
    workers = [multiprocessing.get_context("spawn").Process(target=print, args=("up",), kwargs={"flush": True})]
    for worker in workers: worker.start(); worker.join()
    workers = [multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,)) for _ in range(2)]
    for worker in workers: worker.start()
    time.sleep(2)
    print('here', flush=True); time.sleep(60)
"""
    with script(place, "import os\nif __name__ == '__main__': os.setsid()" + HEAD + INSTALL + workers) as running:
        os.killpg(running.process.pid, signal.SIGTERM)
        _, err = running.process.communicate(timeout=30)
    assert running.process.returncode == EXIT_EVICTED
    assert len(list((place / "backup").glob("0*"))) == 1, err


def test_sigterm_that_is_blocked_is_heard_and_stays_blocked_over_a_fork(place: Path) -> None:
    """Some launchers pass a blocked SIGTERM on; a library that waits for it in a thread of its own blocks it too."""
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])"
    fork = """
if (child := os.fork()) == 0: os._exit(0)
os.waitpid(child, 0)
print(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""
    with script(place, block + HEAD + INSTALL + fork + REST) as running:
        running.process.terminate()
        _, err = running.process.communicate(timeout=30)
    assert running.before == ["True"]
    assert running.process.returncode == EXIT_EVICTED
    assert err.count("saved, ended by SIGTERM") == 1


def test_impatience_does_not_cost_the_save(place: Path) -> None:
    """Ctrl-C again and again after SIGTERM: the first ends the program, the next ones meet its exit hooks."""
    big = "import numpy as np; big = np.ones(800_000_000, 'uint8'); guard.keep(big=big)\n"
    with script(place, HEAD + INSTALL.replace("grace_s=3", "grace_s=20") + big + REST) as running:
        running.process.terminate()
        for _ in range(20):
            time.sleep(0.02)
            running.process.send_signal(signal.SIGINT)
        _, err = running.process.communicate(timeout=30)
    assert running.process.returncode == EXIT_EVICTED, err
    assert list((place / "backup").glob("*/manifest.json")), err


def test_a_main_thread_that_ends_during_the_save_does_not_lose_it(place: Path) -> None:
    code = "signal.signal(signal.SIGINT, lambda *a: sys.exit(1))\n"
    with script(place, HEAD + INSTALL + code + REST) as running:
        running.process.terminate()
        running.process.send_signal(signal.SIGINT)
        running.process.communicate(timeout=30)
    assert running.process.returncode == EXIT_EVICTED


def test_files_beside_the_script_do_no_harm_and_are_named(place: Path) -> None:
    for name in ("random.py", "zlib.py", "hashlib.py", "shutil.py", "socket.py"):
        (place / name).write_text("raise RuntimeError('the user\\'s own file')")
    _, err = evicted(place, HEAD + INSTALL + REST)
    assert f"random.py in {place} hides the module 'random'" in err


@pytest.mark.parametrize("directory", ["/proc/nope", "file"])
def test_a_directory_that_takes_no_snapshots_is_told_when_the_guard_is_installed(place: Path, directory: str) -> None:
    (place / "file").touch()
    done = finished(place, f"from jupyter_paddle_gpu import guard\nguard.install({directory!r})\nprint('on')")
    assert done.returncode == 1
    assert f"No snapshot could be written to {directory}" in done.stderr
    assert done.stdout == ""


def test_a_value_without_a_name_is_refused_with_what_to_write(place: Path) -> None:
    done = finished(place, "from jupyter_paddle_gpu import guard\nguard.keep('history')")
    assert "A value is kept under a name, and 'history' has none. guard.keep(history=history)" in done.stderr


def test_a_prediction_counts_what_is_kept(place: Path) -> None:
    text = said(
        place,
        "import numpy as np\nfrom jupyter_paddle_gpu import guard\nguard.install('backup')\n"
        "parts = {'big': np.zeros(10**6), 'history': [1.5] * 1000, 'nested': [{'a': np.zeros(1000)}]}\n"
        "guard.keep(parts=parts)\nprint(guard.status().nbytes, guard.save().nbytes)",
    )
    predicted, real = map(int, text.split())
    assert 0.9 * real <= predicted <= 1.1 * real
