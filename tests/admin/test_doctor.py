"""`jupyter paddle-gpu doctor`: each fault is named with its next step, and decides the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CODE = "from jupyter_paddle_gpu.admin.app import main; import sys; sys.exit(main())"


def doctor(place: Path, *options: str, **environment: str) -> tuple[int, str]:
    """Run the doctor in ``place`` and return its exit code and what it prints."""
    own = {"JUPYTER_PADDLE_GPU_SNAPSHOTS": str(place / "snapshots"), "JUPYTER_PADDLE_GPU_BOOK": str(place / "book")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE, "doctor", *options],
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **own, **environment},
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def findings(place: Path, **environment: str) -> dict[str, dict[str, Any]]:
    code, text = doctor(place, "--json", **environment)
    found = json.loads(text)["findings"]
    assert code == int(any(finding["verdict"] == "FAULT" for finding in found))
    return {finding["what"]: finding for finding in found}


def test_where_everything_works_it_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code, text = doctor(tmp_path)
    assert code == 0
    assert text.startswith("Everything works")
    assert "paddlepaddle" in text
    assert "the machine lends one CPU slot" in text
    assert "/s; a grace of 1 min 00 s saves" in text
    assert not (tmp_path / "snapshots").exists()


def test_a_disk_that_takes_no_snapshots_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = findings(tmp_path, JUPYTER_PADDLE_GPU_SNAPSHOTS=str(tmp_path / "file" / "below"))["snapshots"]
    assert found["verdict"] == "FAULT"
    assert "Not a directory" in found["found"]
    assert "JUPYTER_PADDLE_GPU_SNAPSHOTS" in found["next_step"]


def test_a_book_that_is_no_directory_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = findings(tmp_path, JUPYTER_PADDLE_GPU_BOOK=str(tmp_path / "file"))["GPUs"]
    assert found["verdict"] == "FAULT"
    assert found["next_step"]


def test_a_paddle_for_the_cpu_beside_gpus_is_a_warning(tmp_path: Path) -> None:
    book = tmp_path / "book"
    book.mkdir(mode=0o1777)
    book.chmod(0o1777)
    (book / "machine.json").write_text('{"gpus": ["0", "1"]}')
    found = findings(tmp_path)
    assert found["GPUs"]["found"].startswith("2 to lend")
    assert found["Paddle"]["verdict"] == "warning"
    assert "computes on the CPU" in found["Paddle"]["found"]


@pytest.mark.parametrize("enabled", [False, True])
def test_a_server_extension_that_is_not_enabled_is_a_fault(tmp_path: Path, enabled: bool) -> None:
    config = tmp_path / "config"
    config.mkdir()
    chosen = {"ServerApp": {"jpserver_extensions": {"jupyter_paddle_gpu": enabled}}}
    (config / "jupyter_server_config.json").write_text(json.dumps(chosen))
    found = findings(tmp_path, JUPYTER_CONFIG_DIR=str(config), JUPYTER_PREFER_ENV_PATH="0")["server"]
    assert found["verdict"] == ("ok" if enabled else "FAULT")


def test_a_jupyter_without_our_kernel_is_a_fault(tmp_path: Path) -> None:
    """An environment of its own sees the package, but not what its installation puts beside Jupyter."""
    bare = {"JUPYTER_PATH": "", "JUPYTER_DATA_DIR": str(tmp_path / "data"), "JUPYTER_PREFER_ENV_PATH": "0"}
    code = "import sys; sys.prefix = sys.exec_prefix = sys.argv.pop(1); " + CODE
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), "doctor", "--book", str(tmp_path / "book"), "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, **bare, "JUPYTER_PADDLE_GPU_SNAPSHOTS": str(tmp_path / "snapshots")},
    )
    found = {finding["what"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert "Jupyter knows no kernel 'paddle-gpu'" in found["kernel"]["found"]
