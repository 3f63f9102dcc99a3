"""``%paddle_gpu`` in a real IPython shell without an agent, and its texts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.kernel.display import Facts, Table
from jupyter_paddle_gpu.kernel.parser import HelpShown, MagicParser, split

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


def test_bad_requests_are_refused_before_anything_moves(tmp_path: Path) -> None:
    wrong = ["--gpus -1", "--grace 0.1s", "--grace 2h", "--memory lots", "--tier vip", "--gpus two"]
    output = shell(tmp_path, *(f"%paddle_gpu request {options}" for options in wrong))
    assert output.count("FAILED UsageError") == len(wrong)
    for named in ("-1", "0.1", "7200", "'lots'", "'vip'", "'two'"):
        assert named in output


def test_without_a_session_the_commands_say_what_to_do(tmp_path: Path) -> None:
    output = shell(
        tmp_path, "%paddle_gpu", "%paddle_gpu request --gpus 1", "%paddle_gpu release", "%paddle_gpu explain"
    )
    assert "%paddle_gpu request asks for one" in output
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


def test_what_cannot_be_kept_or_restored_is_said(tmp_path: Path) -> None:
    output = shell(
        tmp_path, "%paddle_gpu keep histroy", "import threading; lock = threading.Lock()", "%paddle_gpu keep lock",
        "%paddle_gpu restore", "%paddle_gpu save",
    )  # fmt: skip
    assert "There is no variable histroy" in output
    assert "lock" in output
    assert "There is no snapshot" in output
    assert output.count("FAILED UsageError") == 4


def test_completion_knows_subcommands_options_tiers_and_variables(tmp_path: Path) -> None:
    output = shell(
        tmp_path,
        "history = []",
        "complete = lambda line: print('COMPLETES', line, sorted(get_ipython().complete('', line, len(line))[1]))",
        "complete('%paddle_gpu sn')",
        "complete('%paddle_gpu request --gr')",
        "complete('%paddle_gpu request --tier ur')",
        "complete('%paddle_gpu keep hist')",
    )
    assert "COMPLETES %paddle_gpu sn ['snapshots']" in output
    assert "COMPLETES %paddle_gpu request --gr ['--grace']" in output
    assert "COMPLETES %paddle_gpu request --tier ur ['urgent']" in output
    assert "COMPLETES %paddle_gpu keep hist ['history']" in output


@given(st.text(), st.text(), st.text())
def test_what_is_shown_is_escaped(title: str, name: str, value: str) -> None:
    hostile = "<script>alert(1)</script>"
    for shown in (
        Facts(title + hostile, [(name, value + hostile)], [hostile]),
        Table(title, ("a", "b"), [(name, hostile)], hostile),
    ):
        assert "<script>" not in shown._repr_html_()
        assert "&lt;script&gt;" in shown._repr_html_()
        assert hostile in str(shown)


def test_an_empty_table_says_so() -> None:
    assert str(Table("Snapshots", ("a",), [], "None yet.")) == "Snapshots\n  None yet."
    assert "None yet." in Table("Snapshots", ("a",), [], "None yet.")._repr_html_()


def test_the_parser_never_exits() -> None:
    parser = MagicParser(prog="%paddle_gpu request")
    parser.add_argument("--gpus", type=int)
    with pytest.raises(HelpShown):
        parser.parse_args(["--help"])
    with pytest.raises(RequestError, match="Close the quote"):
        split("request 'x")
    with pytest.raises(RequestError, match="two"):
        parser.parse_args(["--gpus", "two"])
