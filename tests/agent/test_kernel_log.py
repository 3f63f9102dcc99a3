"""The kernel's output on disk and its last lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from jupyter_paddle_gpu.agent.kernel_log import TAIL_BYTES, KernelLog


def run(log: KernelLog, code: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=log.sender, stderr=log.sender)
    log.start()
    process.wait()


def test_output_is_appended_and_its_end_remembered(tmp_path: Path) -> None:
    path = tmp_path / "kernel.log"
    for word in ("first", "second"):
        log = KernelLog(path)
        run(log, f"import sys; print('{word}'); print('error', file=sys.stderr)")
        assert sorted(log.tail(10).split()) == sorted([word, "error"])
    assert path.read_text().count("error") == 2


def test_an_endless_output_takes_two_files_of_the_limit_at_most(tmp_path: Path) -> None:
    path = tmp_path / "kernel.log"
    log = KernelLog(path, limit_bytes=200_000)
    run(log, "for number in range(200_000): print('line', number)")
    tail = log.tail(10)
    assert tail.endswith("line 199999\n")
    assert tail.startswith("line ")  # whole lines
    assert len(tail) <= TAIL_BYTES
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= 200_000
    assert path.read_text().endswith("line 199999\n")


def test_no_words_is_no_error_and_odd_bytes_are_shown(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "kernel.log")
    run(log, "pass")
    assert log.tail(10) == ""
    log = KernelLog(tmp_path / "kernel.log")
    run(log, "import os; os.write(1, b'\\xff\\xfe tail')")
    assert log.tail(10).endswith(" tail")


def test_a_full_disk_does_not_stop_the_writer() -> None:
    log = KernelLog(Path("/dev/full"))
    run(log, "print('x' * 500_000); print('end')")
    assert log.tail(10).endswith("end\n")


def test_the_tail_does_not_wait_for_those_who_hold_the_output_open(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "kernel.log")
    held = os.dup(log.sender)
    run(log, "print('said')")
    assert log.tail(0.2) in ("said\n", "")
    os.close(held)
    assert log.tail(10) == "said\n"
