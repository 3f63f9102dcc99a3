"""The extension in kernels and terminals: it loads everywhere, quickly, and says what is in its way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.agentspec import ENV_AGENT
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import EXIT_EVICTED, CellDone, CellRunning, Served
from tests.kernel.kernels import AgentEnd, Notebook, notebook

PLAIN = "ipykernel_launcher"


def terminal(place: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run these lines in a terminal IPython."""
    return subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"],
        input="\n".join(lines) + "\n",
        cwd=place,
        env={**os.environ, "JUPYTER_PADDLE_GPU_SNAPSHOTS": str(place / "snapshots"), "IPYTHONDIR": str(place / "ip")},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_terminal_without_an_agent_saves_and_restores(place: Path) -> None:
    lines = ["%load_ext jupyter_paddle_gpu", "from jupyter_paddle_gpu import guard"]
    one = terminal(place, *lines, "best = [1]", "guard.keep(best=best)", "print('SAVED', guard.save().cause.value)")
    assert "SAVED manual" in one.stdout, one.stdout + one.stderr
    assert "Traceback" not in one.stdout + one.stderr
    other = terminal(place, *lines, "best = []", "x = guard.restore()", "guard.keep(best=best)", "print('AGAIN', best)")
    assert "AGAIN [1]" in other.stdout, other.stdout + other.stderr
    assert "best was restored" in other.stderr


def test_a_terminal_has_no_notebook_to_move(place: Path) -> None:
    done = terminal(place, "%load_ext jupyter_paddle_gpu", "%paddle_gpu request")
    assert "UsageError: This is no notebook's kernel, so there is nothing to move. Start" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_loading_again_is_silent(place: Path) -> None:
    with notebook(place) as opened:
        assert opened.good("%load_ext jupyter_paddle_gpu\n%load_ext jupyter_paddle_gpu") != ""  # IPython's own remark
        assert "paddle-gpu" not in opened.good("%reload_ext jupyter_paddle_gpu\nprint('ok')")
        assert "paddle-gpu" not in opened.good("%unload_ext jupyter_paddle_gpu\nprint('ok')")


@pytest.mark.parametrize("module", ["", PLAIN], ids=["ours", "plain"])
def test_files_beside_the_notebook_do_no_harm_and_are_named_where_they_might(place: Path, module: str) -> None:
    early = () if module else ("types", "typing", "enum", "operator", "collections")  # imported by python -m itself
    for name in ("dl", "signal", "random", *early):
        (place / f"{name}.py").write_text("raise RuntimeError('the user\\'s own file')")
    with notebook(place, module=module) as opened:
        said = opened.good("%load_ext jupyter_paddle_gpu\nprint('first cell')")
        assert f"dl.py in {place} hides the module 'dl'" in said
        assert "random.py" not in said  # IPython looks for Python's own library first
        opened.good("import random, signal; random.random()")
        assert opened.good("from jupyter_paddle_gpu import guard; guard.keep(a=1); print(guard.save().nbytes > 0)")
        assert opened.good("print('quiet')") == "quiet\n"


def test_a_file_that_hides_pythons_own_module_is_named(place: Path) -> None:
    (place / "ftplib.py").write_text("raise RuntimeError")
    done = terminal(place, "%load_ext jupyter_paddle_gpu", "from jupyter_paddle_gpu import guard", "guard.snapshots()")
    assert f"ftplib.py in {place} hides the module 'ftplib'" in done.stderr
    assert "()" in done.stdout


def test_the_directory_is_the_notebooks(place: Path) -> None:
    environ = {"JPY_SESSION_NAME": str(place / "训练 1.ipynb")}
    with notebook(place, environ=environ) as opened:
        said = opened.good("from jupyter_paddle_gpu import guard; guard.keep(a=1); print(guard.save().path)")
    assert Path(said.strip()).parent.name.startswith("训练-1-")
    assert Path(said.strip()).is_dir()


def test_a_plain_kernel_ends_its_cell_on_sigterm_too(place: Path) -> None:
    with notebook(place, module=PLAIN) as opened:
        running = opened.begin(
            "%load_ext jupyter_paddle_gpu\nfrom jupyter_paddle_gpu import guard; guard.keep(a=1)\n"
            "print('here', flush=True)\nimport time; time.sleep(600)"
        )
        opened.read(lambda: "here" in running.text)
        os.kill(opened.pid, 15)
        opened.end(running)
        assert running.error == "Evicted: kept values saved, ended by SIGTERM"
        assert opened.exit_code() == EXIT_EVICTED


def test_an_agent_that_does_not_answer_is_told_in_the_first_cell(place: Path) -> None:
    with notebook(place, environ={ENV_AGENT: str(place / "gone.sock")}) as opened:
        assert "gone.sock does not answer" in opened.good("1")
        assert opened.good("print('works')") == "works\n"
        assert opened.good("import os; print(os.environ.get('PADDLE_GPU_AGENT'))") == "None\n"


def test_a_notice_with_nothing_to_save_is_answered_at_once(evictable: Notebook, agent: AgentEnd) -> None:
    agent.notice(Cause.RELEASED, 600.0)
    assert agent.wait(Served, 5.0).outcome is SaveOutcome.NOTHING
    assert evictable.exit_code() == EXIT_EVICTED


def test_an_idle_kernel_saves_what_is_kept(evictable: Notebook, agent: AgentEnd) -> None:
    evictable.good("from jupyter_paddle_gpu import guard; guard.keep(history=[1, 2])")
    agent.notice(Cause.RELEASED, 600.0)
    served = agent.wait(Served)
    assert served.outcome is SaveOutcome.SAVED
    assert served.snapshot is not None
    assert served.snapshot.is_dir()


def test_the_agent_knows_the_running_cell(evictable: Notebook, agent: AgentEnd) -> None:
    evictable.good("print('one')")
    running = agent.wait(CellRunning)
    assert running.parent["msg_type"] == "execute_request"
    assert running.parent["msg_id"] in evictable.cells
    assert running.idents
    agent.wait(CellDone)


def test_a_drill_from_the_server_saves_and_ends_nothing(evictable: Notebook, agent: AgentEnd) -> None:
    evictable.good("from jupyter_paddle_gpu import guard; guard.keep(a=1)")
    agent.notice(Cause.DRILL)
    assert agent.wait(Served).outcome is SaveOutcome.SAVED
    assert evictable.good("print('alive')") == "alive\n"


def test_an_unwritable_directory_is_an_error_in_the_cell_and_an_answer_to_the_agent(
    place: Path, agent: AgentEnd
) -> None:
    (place / "file").touch()
    with notebook(place, agent, {"JUPYTER_PADDLE_GPU_SNAPSHOTS": str(place / "file")}) as opened:
        cell = opened.run("from jupyter_paddle_gpu import guard; guard.keep(a=1); guard.save()")
        assert cell.error.startswith("StoreUnwritable: No snapshot could be written to")
        running = opened.begin("print('here', flush=True); import time; time.sleep(600)")
        opened.read(lambda: "here" in running.text)
        agent.notice()
        opened.end(running)
        assert "nothing saved: No snapshot could be written" in running.error
        assert "waiting for a GPU, position 2" in running.error
        served = agent.wait(Served)
        assert served.outcome is SaveOutcome.FAILED
        assert "No snapshot could be written" in served.detail


@pytest.mark.parametrize("restart", [True, False])
def test_a_shutdown_saves_what_is_kept_first(place: Path, restart: bool) -> None:
    with notebook(place) as opened:
        opened.good("from jupyter_paddle_gpu import guard; guard.keep(a=1)")
        if restart:
            opened.manager.restart_kernel()
        else:
            opened.manager.shutdown_kernel()
    found = list((place.parent / "snapshots").glob("*/*-state"))
    assert len(found) == 1


def test_install_in_a_notebook_loads_the_extension_and_takes_the_directory(place: Path) -> None:
    with notebook(place, module=PLAIN) as opened:
        opened.good("from jupyter_paddle_gpu import guard; guard.install(directory='backup'); guard.keep(a=1)")
        assert opened.good("print(guard.save().path.parent)") == "backup\n"
        assert opened.good("print(guard.status().protecting)") == "True\n"


def test_in_another_thread_the_extension_says_what_to_do(place: Path) -> None:
    with notebook(place, module=PLAIN) as opened:
        said = opened.good(
            "import threading\nfrom jupyter_paddle_gpu.kernel.runtime import runtime\n"
            "def load():\n    try: runtime().protect_process()\n    except Exception as e: print(e)\n"
            "t = threading.Thread(target=load); t.start(); t.join()"
        )
        assert "in the main thread" in said
