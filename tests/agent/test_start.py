"""Starting an agent: what is wrong is said in a sentence, with an exit code of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.agentspec import AgentSpec
from jupyter_paddle_gpu.core.codec import to_plain
from tests.agent.harness import RunningAgent, make_spec

Run = Callable[..., RunningAgent]


def agent(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jupyter_paddle_gpu.agent", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def written(directory: Path, spec: AgentSpec) -> str:
    path = directory / "agent.json"
    path.write_text(json.dumps(to_plain(spec)))
    return str(path)


@pytest.mark.parametrize("arguments", [(), ("a", "b")])
def test_called_wrongly(arguments: tuple[str, ...]) -> None:
    ended = agent(*arguments)
    assert ended.returncode == os.EX_USAGE
    assert "usage:" in ended.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "needs an object"),
        ("{}", "session"),
        ('{"session": "s", "sokket": "x"}', "no field 'sokket'"),
    ],
)
def test_a_spec_that_cannot_be_used(directory: Path, text: str | None, words: str) -> None:
    path = directory / "agent.json"
    if text is not None:
        path.write_text(text)
    ended = agent(str(path))
    assert ended.returncode == os.EX_CONFIG
    assert str(path) in ended.stderr
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_grace_that_no_request_may_have(directory: Path) -> None:
    plain = to_plain(make_spec(directory))
    plain["request"]["grace_s"] = 0.1
    (directory / "agent.json").write_text(json.dumps(plain))
    ended = agent(str(directory / "agent.json"))
    assert ended.returncode == os.EX_CONFIG
    assert "grace" in ended.stderr


def test_a_socket_path_that_is_too_long(directory: Path) -> None:
    ended = agent(written(directory, replace(make_spec(directory), socket=directory / ("s" * 120))))
    assert ended.returncode == os.EX_CANTCREAT
    assert "Linux allows 107" in ended.stderr
    assert "JUPYTER_RUNTIME_DIR" in ended.stderr


def test_a_directory_that_is_missing_is_made_private(run_agent: Run, directory: Path) -> None:
    run_agent(socket=directory / "new" / "agent.sock").connect()
    assert (directory / "new").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made(directory: Path) -> None:
    (directory / "file").touch()
    ended = agent(written(directory, replace(make_spec(directory), socket=directory / "file" / "agent.sock")))
    assert ended.returncode == os.EX_CANTCREAT
    assert "cannot listen" in ended.stderr


def test_the_socket_of_a_killed_agent_is_replaced_but_not_that_of_a_living_one(run_agent: Run) -> None:
    first = run_agent()
    first.connect()
    second = agent(str(first.spec.kernel_log.with_name("agent.json")))
    assert second.returncode == os.EX_CANTCREAT
    assert "another agent" in second.stderr
    first.process.kill()
    first.exit_code()
    third = run_agent()
    third.connect()
    third.terminate()
    assert third.exit_code() == 143


def test_a_claim_that_is_not_in_the_book(directory: Path) -> None:
    (directory / "book").mkdir()
    spec = replace(make_spec(directory), book=directory / "book", claim="gone", claim_fd=0)
    ended = agent(written(directory, spec))
    assert ended.returncode == os.EX_CANTCREAT
    assert "gone" in ended.stderr


def test_sigterm_at_any_moment_of_the_start_ends_it_with_143(directory: Path) -> None:
    path = written(directory, make_spec(directory))
    for pause_s in (0.02, 0.05, 0.08, 0.11, 0.14):
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_paddle_gpu.agent", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        time.sleep(pause_s)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
        assert process.returncode in (143, -signal.SIGTERM), output  # the second: Python itself was still starting
        assert b"Traceback" not in output


def test_sigterm_is_heard_before_anything_is_loaded() -> None:
    """As a container's first process Python ignores SIGTERM where nobody has set a handler."""
    code = "from jupyter_paddle_gpu.agent.__main__ import main; import os, signal, time; main([]); "
    code += "os.kill(os.getpid(), signal.SIGTERM); time.sleep(10)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
    assert ended.returncode == 143


def test_an_agent_is_light() -> None:
    """It lives beside every kernel: nothing of Jupyter, NumPy, NVML or psutil belongs into it."""
    code = "import jupyter_paddle_gpu.agent.start, sys; print([m for m in sys.modules if m.split('.')[0] in HEAVY])"
    heavy = {"jupyter_client", "jupyter_server", "jupyter_core", "traitlets", "tornado", "zmq", "numpy", "psutil"}
    shown = subprocess.run(
        [sys.executable, "-c", code.replace("HEAVY", repr(heavy | {"pynvml", "paddle"}))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == "[]"
