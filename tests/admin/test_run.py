"""`jupyter paddle-gpu run` and `ps`, as commands."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import HeldLease, Ticket


@pytest.fixture
def book(tmp_path: Path) -> Book:
    (tmp_path / "machine.json").write_text('{"gpus": ["7"]}')
    return Book(tmp_path)


def start(book: Book, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "jupyter_paddle_gpu.admin.app", *arguments],
        env={**os.environ, "JUPYTER_PADDLE_GPU_BOOK": str(book.directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def wait_for(condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(0.02)


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def test_the_job_sees_its_gpu_and_its_exit_code_is_ours(book: Book) -> None:
    code = "import os, sys; print(os.environ['CUDA_VISIBLE_DEVICES']); sys.exit(5)"
    assert finish(start(book, "run", *python(code))) == (5, "7\n", "")
    assert book.claims() == []


def test_a_job_that_is_killed_ends_like_in_a_shell(book: Book) -> None:
    code, _, _ = finish(start(book, "run", *python("import os; os.kill(os.getpid(), 9)")))
    assert code == 137


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run"], "no command"),
        (["run", "--gpus", "2", "--", "true"], "this machine has 1"),
        (["run", "--tier", "vip", "--", "true"], "urgent, service"),
        (["run", "--grace", "0.1s", "--", "true"], "grace"),
    ],
)
def test_bad_input_is_named_with_the_next_step(book: Book, arguments: list[str], named: str) -> None:
    code, _, errors = finish(start(book, *arguments))
    assert code == 2
    assert named in errors
    assert "Traceback" not in errors
    assert book.claims() == []


def test_a_command_that_does_not_exist(book: Book) -> None:
    code, _, errors = finish(start(book, "run", "--", "no-such-program"))
    assert code == 127
    assert "no-such-program" in errors


def test_a_job_gives_its_gpu_to_a_higher_tier_within_its_grace(book: Book, tmp_path: Path) -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    job = start(book, "run", "--grace", "1s", *python(stubborn))
    assert job.stdout
    assert job.stdout.readline() == "up\n"
    assert finish(start(book, "run", "--tier", "urgent", *python("print('urgent')")))[:2] == (0, "urgent\n")
    code, _, errors = finish(job)
    assert code == 137
    assert "Evicted by" in errors
    assert "(urgent)" in errors


def test_a_job_that_hears_the_notice_ends_by_itself(book: Book) -> None:
    job = start(book, "run", *python("import time; print('up', flush=True); time.sleep(60)"))
    assert job.stdout
    assert job.stdout.readline() == "up\n"
    assert finish(start(book, "run", "--tier", "urgent", "--", "true"))[0] == 0
    assert finish(job)[0] == 143


BEHIND_A_SHELL = {
    "a command after it": ["sh", "-c", "{python} train.py; echo done"],
    "a pipe": ["bash", "-c", "{python} train.py 2>&1 | cat"],
    "in the background": ["sh", "-c", "{python} train.py & wait"],
}


@pytest.mark.parametrize("ended", ["evicted", "by SIGTERM"])
@pytest.mark.parametrize("command", BEHIND_A_SHELL.values(), ids=BEHIND_A_SHELL.keys())
def test_a_job_behind_a_shell_has_its_time_to_save(book: Book, command: list[str], ended: str, tmp_path: Path) -> None:
    """The shell ends at SIGTERM, what it has started saves a little longer [docker-stacks#275]."""
    code = "from jupyter_paddle_gpu import guard\nguard.install('backup')\nguard.keep(best=[1])\n"
    slow = "import signal, time\nsignal.signal(15, lambda *a: time.sleep(0.5))\n"
    (tmp_path / "train.py").write_text(f"{slow}{code}print('up', flush=True)\ntime.sleep(60)")
    at = ["env", "-C", str(tmp_path), *(part.format(python=sys.executable) for part in command)]
    job = start(book, "run", "--grace", "30s", "--", *at)
    assert job.stdout
    assert job.stdout.readline() == "up\n"
    if ended == "evicted":
        assert finish(start(book, "run", "--tier", "urgent", "--", "true"))[0] == 0
    else:
        job.terminate()
    began_s = time.monotonic()
    assert finish(job)[0] == 143
    assert time.monotonic() - began_s < 20, "the GPU is kept when all have ended"
    assert list((tmp_path / "backup").glob("*/manifest.json"))


def test_what_a_job_leaves_behind_at_its_own_end_does_not_keep_the_gpu(book: Book) -> None:
    began_s = time.monotonic()
    assert finish(start(book, "run", "--grace", "30s", "--", "sh", "-c", "sleep 60 >&- 2>&- &"))[0] == 0
    assert time.monotonic() - began_s < 20


def test_ctrl_c_while_waiting_withdraws_the_request(book: Book) -> None:
    holder = Ticket.file(book, GpuRequest(tier="urgent"), "holder")
    assert holder.poll()
    job = start(book, "run", "--", "true")
    assert job.stderr
    said = job.stderr.readline()
    assert "place 1" in said
    assert "holder (urgent)" in said
    job.send_signal(signal.SIGINT)
    assert finish(job)[0] == 130
    assert [claim.label for claim in book.claims()] == ["holder"]
    holder.release()


def test_ctrl_c_reaches_the_job(book: Book) -> None:
    job = start(book, "run", *python("import time; print('up', flush=True); time.sleep(60)"))
    assert job.stdout
    assert job.stdout.readline() == "up\n"
    job.send_signal(signal.SIGINT)
    assert finish(job)[0] != 0
    assert book.claims() == []


def test_a_job_ends_with_the_command_that_runs_it_even_if_that_is_killed(book: Book) -> None:
    job = start(book, "run", *python("import os, time; print(os.getpid(), flush=True); time.sleep(60)"))
    assert job.stdout
    pid = int(job.stdout.readline())
    job.kill()
    finish(job)
    wait_for(lambda: not book.claims())
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()


def test_what_outlives_a_killed_command_keeps_the_lease(book: Book) -> None:
    job = start(book, "run", "--", "sh", "-c", "sleep 60 & echo $!; wait")
    assert job.stdout
    pid = int(job.stdout.readline())
    job.kill()
    job.wait()
    job.stdout.close()
    assert job.stderr
    job.stderr.close()
    waiter = Ticket.file(book, GpuRequest(), "next")
    assert not waiter.wait(timeout_s=0.3), "the device was lent while a process of the job still used it"
    os.kill(pid, signal.SIGKILL)
    assert waiter.wait(timeout_s=30)
    waiter.release()


def test_a_job_goes_on_without_its_book_and_leaves_nothing_behind(book: Book) -> None:
    code = "import time; print('up', flush=True); input(); print('done')"
    job = subprocess.Popen(
        [sys.executable, "-m", "jupyter_paddle_gpu.admin.app", "run", "--book", str(book.directory), *python(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert job.stdout
    assert job.stderr
    assert job.stdout.readline() == "up\n"
    shutil.rmtree(book.directory)
    assert "The job goes on" in job.stderr.readline()
    output, _ = job.communicate("\n", timeout=60)
    assert (job.returncode, output) == (0, "done\n")


def test_ps_whose_reader_has_enough_says_nothing(book: Book) -> None:
    process = start(book, "ps")
    assert process.stdout
    process.stdout.close()
    process.wait(60)
    assert process.stderr
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_directory_that_cannot_be_a_book_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "jupyter_paddle_gpu.admin.app", "ps", "--book", str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "is not a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_ps_shows_who_holds_and_who_waits_and_why(book: Book) -> None:
    holder, waiter = (
        Ticket.file(book, GpuRequest(tier="batch"), "train.py"),
        Ticket.file(book, GpuRequest(), "训练 1.ipynb"),
    )
    assert holder.poll()
    code, output, _ = finish(start(book, "ps"))
    assert code == 0
    assert output.startswith("0 of 1 GPU free\n")
    assert "训练 1.ipynb" in output
    shown = json.loads(finish(start(book, "ps", "--json"))[1])
    assert [(row["state"], row["tier"], row["position"]) for row in shown["claims"]] == [
        ("holds", "batch", None),
        ("waits", "notebook", 1),
    ]
    assert "held by train.py (batch)" in shown["claims"][1]["why"]
    assert shown["devices"][0]["id"] == "7"
    urgent = Ticket.file(book, GpuRequest(tier="urgent"), "incident")
    urgent.poll()
    lease = HeldLease.attach(book.directory, holder.claim_id, holder.fd)
    assert lease.eviction()
    assert "gives up" in finish(start(book, "ps"))[1]
    for claim in (lease, waiter, urgent):
        claim.release()
