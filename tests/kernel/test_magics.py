"""``%paddle_gpu`` in a real IPython shell without an agent, and its texts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.kernel.parser import HelpShown, MagicParser, split
from tests.kernel.kernels import notebook

SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "jupyter_paddle_gpu")
for line in sys.stdin.read().splitlines():
    result = shell.run_cell(line)
    if result.error_in_exec:
        print("FAILED", type(result.error_in_exec).__name__)
"""


def shell(tmp_path: Path, *lines: str) -> str:
    """Run cells in a fresh terminal shell; return what it printed, with FAILED behind a cell that failed."""
    environment = {
        "PATH": "",
        "HOME": str(tmp_path),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_PADDLE_GPU_SNAPSHOTS": str(tmp_path / "snapshots"),
        "JUPYTER_PADDLE_GPU_BOOK": str(tmp_path / "book"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "COLUMNS": "300",
    }
    command = [sys.executable, "-c", SHELL]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_every_subcommand_has_help(tmp_path: Path) -> None:
    names = ["status", "request", "release", "save", "restore", "snapshots", "explain", "tiers", "keep", "drill"]
    output = shell(tmp_path, "%paddle_gpu --help", *(f"%paddle_gpu {name} --help" for name in names))
    for name in names:
        assert f"usage: %paddle_gpu {name}" in output
    assert "FAILED" not in output


def test_a_wrong_word_fails_the_cell_with_the_nearest_right_one_and_no_traceback(tmp_path: Path) -> None:
    output = shell(tmp_path, "%paddle_gpu statsu", "%paddle_gpu request --gpu-s 2", "%paddle_gpu request --grace soon")
    assert "Did you mean status?" in output
    assert "has no option --gpu-s. Did you mean --gpus?" in output
    assert "'soon' is not a duration" in output
    assert output.count("FAILED UsageError") == 3
    assert "Traceback" not in output


def test_what_a_subcommand_does_not_take_is_called_what_it_is(tmp_path: Path) -> None:
    output = shell(
        tmp_path, "%paddle_gpu status now", "%paddle_gpu request gpus=1", "%paddle_gpu STATUS", "%paddle_gpu --hepl",
        "%paddle_gpu help keep",
    )  # fmt: skip
    assert "%paddle_gpu status has no argument now. " in output
    assert "has no argument gpus=1. Did you mean --gpus? %paddle_gpu request --help" in output
    assert "Did you mean status?" in output
    assert "Did you mean --help?" in output
    assert "usage: %paddle_gpu keep" in output
    assert output.count("FAILED UsageError") == 4


def test_bad_requests_are_refused_before_anything_moves(tmp_path: Path) -> None:
    wrong = ["--gpus -1", "--grace 0.1s", "--grace 2h", "--memory lots", "--tier vip", "--gpus two", "--every 1s"]
    output = shell(tmp_path, *(f"%paddle_gpu request {options}" for options in wrong))
    assert output.count("FAILED UsageError") == len(wrong)
    for named in ("-1", "0.1", "2 h 00 min", "'lots'", "'vip'", "'two'", "every 1 s"):
        assert named in output


def test_without_a_session_the_commands_say_what_to_do(tmp_path: Path) -> None:
    output = shell(
        tmp_path, "%paddle_gpu", "%paddle_gpu request --gpus 1", "%paddle_gpu release", "%paddle_gpu explain"
    )
    assert "%paddle_gpu request moves the notebook to one" in output
    assert "jupyter console --kernel paddle-gpu" in output
    assert "1 of 1 CPU slot free on this machine" in output
    assert output.count("FAILED UsageError") == 2


def test_tiers_are_listed(tmp_path: Path) -> None:
    output = shell(tmp_path, "%paddle_gpu tiers")
    assert output.index("urgent") < output.index("1,000,000") < output.index("notebook") < output.index("-10")


def test_kept_values_are_saved_listed_and_restored(tmp_path: Path) -> None:
    output = shell(
        tmp_path,
        "history, best = [1.5, 2.5], {'a': 1}",
        "%paddle_gpu keep history best",
        "%paddle_gpu save",
        "%paddle_gpu snapshots",
        "history.append(99.0); best = None",
        "%paddle_gpu restore",
        "print('history is', history, best)",
        "%paddle_gpu keep best --drop",
        "%paddle_gpu drill",
    )
    assert "Kept in every snapshot: history, best" in output
    assert "000001-state" in output
    assert "history is [1.5, 2.5] {'a': 1}" in output
    assert output.rstrip().split("Kept in every snapshot: ")[-1].startswith("history\n")
    assert "bit for bit" in output
    assert "FAILED" not in output


def test_snapshots_are_looked_after(tmp_path: Path) -> None:
    output = shell(
        tmp_path,
        "best = [1.5]",
        "%paddle_gpu keep best",
        "%paddle_gpu save",
        "%paddle_gpu snapshots pin",
        "%paddle_gpu snapshots show",
        "%paddle_gpu snapshots verify",
        "%paddle_gpu snapshots delete 000001-state",
        "%paddle_gpu snapshots export",
        "%paddle_gpu snapshots unpin",
        "%paddle_gpu snapshots delete 000001-state",
        "%paddle_gpu snapshots",
        "%paddle_gpu snapshots destroy",
    )
    assert "Pinned: 000001-state stays" in output
    assert "kept" in output
    assert "whole; " in output
    assert "000001-state is pinned. Unpin it first" in output
    assert "The snapshot holds no network" in output
    assert "Deleted: 000001-state; left: none" in output
    assert "None yet; %paddle_gpu save makes one" in output
    assert "invalid choice: 'destroy'" in output
    assert output.count("FAILED UsageError") == 3


def test_what_is_kept_can_be_dropped_also_when_its_variable_is_gone(tmp_path: Path) -> None:
    output = shell(
        tmp_path,
        "history, best = [1.5], 3",
        "%paddle_gpu keep history best",
        "%paddle_gpu status",
        "del history",
        "%paddle_gpu keep --drop history",
        "%paddle_gpu keep --drop bset",
        "%paddle_gpu keep --drop",
    )
    assert "the first save measures the time" in output
    assert "Kept in every snapshot: best\n" in output
    assert "bset is not kept. Did you mean best? These are: best." in output
    assert "--drop needs the names" in output
    assert output.count("FAILED UsageError") == 2


def test_a_restored_value_that_nobody_asked_for_can_be_dropped(tmp_path: Path) -> None:
    shell(tmp_path, "history = [1.5]", "%paddle_gpu keep history", "%paddle_gpu save")
    drop = "%paddle_gpu keep --drop history"
    output = shell(tmp_path, "%paddle_gpu restore", drop, drop)
    assert "history was restored and waits" in output
    assert output.count("FAILED UsageError") == 1, "the second time there is none"
    assert "history is not kept. Nothing is." in output


def test_what_cannot_be_kept_or_restored_is_said(tmp_path: Path) -> None:
    output = shell(
        tmp_path, "%paddle_gpu keep histroy", "import threading; lock = threading.Lock()", "%paddle_gpu keep lock",
        "%paddle_gpu restore", "%paddle_gpu save",
    )  # fmt: skip
    assert "There is no variable histroy" in output
    assert "lock" in output
    assert "There is no snapshot" in output
    assert output.count("FAILED UsageError") == 4


def test_completion_knows_what_may_stand_at_the_cursor(tmp_path: Path) -> None:
    expected = {
        "%paddle_gpu sn": ["snapshots"],
        "  %paddle_gpu sn": ["snapshots"],
        "%paddle_gpu request --gr": ["--grace"],
        "%paddle_gpu request --gpus 1 --t": ["--tier"],
        "%paddle_gpu request --tier ur": ["urgent"],
        "%paddle_gpu request --tier=ur": ["urgent"],
        "%paddle_gpu request --tier 1 ": ["--every", "--gpus", "--grace", "--help", "--memory", "-h"],
        "%paddle_gpu keep ": ["best", "history"],
        "%paddle_gpu keep history ": ["best"],
        "%paddle_gpu keep --drop ": ["history"],
        "%paddle_gpu restore 0": ["000001-state"],
        "%paddle_gpu snapshots un": ["unpin"],
        "%paddle_gpu snapshots pin 0": ["000001-state"],
    }
    lines = [f"complete({line!r})" for line in expected]
    output = shell(
        tmp_path,
        "import math; history, best = [], {}",
        "def a_function(): pass",
        "%paddle_gpu keep history",
        "%paddle_gpu save",
        "def complete(_): print('COMPLETES', [_, sorted(get_ipython().complete('', _, len(_))[1])])",
        *lines,
    )
    found = [json.loads(line.split(" ", 1)[1].replace("'", '"')) for line in output.splitlines() if "COMPLETES" in line]
    assert dict(found) == expected


def test_completion_is_silent_where_the_tiers_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir(mode=0o1777)
    (tmp_path / "book" / "machine.json").write_text("{")
    line = "%paddle_gpu request --tier ur"
    output = shell(
        tmp_path, f"get_ipython().complete('', {line!r}, {len(line)}); print('went on')", "%paddle_gpu tiers"
    )
    assert "went on" in output
    assert "Traceback" not in output
    assert "machine.json" in output, "the command says what completion does not"


def test_a_fault_fails_the_cell_of_a_real_kernel_without_the_traceback_of_an_earlier_one(place: Path) -> None:
    with notebook(place) as opened:
        opened.run("1 / 0")
        cell = opened.run("%paddle_gpu statsu")
        assert cell.replies[0]["status"] == "error"
        assert cell.replies[0]["ename"] == "UsageError"
        assert cell.replies[0]["traceback"] == [cell.error]
        assert cell.error.startswith("UsageError: %paddle_gpu has no subcommand statsu. Did you mean status?")
        assert {"text/plain", "text/html"} <= set(opened.run("%paddle_gpu status").data[0])
        code = "x = 1\n%paddle_gpu request --tier ur\ny = 2"
        content = opened.client.complete(code, code.index("\ny"), reply=True, timeout=30)["content"]
        assert content["matches"] == ["urgent"]
        assert code[content["cursor_start"] : content["cursor_end"]] == "ur"


def test_the_parser_never_exits() -> None:
    parser = MagicParser(prog="%paddle_gpu request")
    parser.add_argument("--gpus", type=int)
    with pytest.raises(HelpShown):
        parser.parse_args(["--help"])
    with pytest.raises(RequestError, match="Close the quote"):
        split("request 'x")
    with pytest.raises(RequestError, match="two"):
        parser.parse_args(["--gpus", "two"])
