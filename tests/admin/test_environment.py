"""The set-up of a clone: what it says where it cannot go on, and when it does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_paddle_gpu.admin import environment
from jupyter_paddle_gpu.admin.environment import SetUpError


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that puts a Node.js of a version on the PATH."""

    def put(version: str) -> None:
        program = tmp_path / "path" / "node"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)

    return put


@pytest.fixture
def clone(tmp_path: Path, node: Callable[[str], None]) -> Path:
    """A directory with the files that an installation depends on, on a machine with Node.js."""
    node("v22.20.0")
    (tmp_path / "labextension" / "src").mkdir(parents=True)
    (tmp_path / "labextension" / "src" / "index.ts").write_text("")
    (tmp_path / "jupyter_paddle_gpu" / "share").mkdir(parents=True)
    (tmp_path / "jupyter_paddle_gpu" / "share" / "kernel.json").write_text("{}")
    (tmp_path / "pyproject.toml").write_text("[project]")
    return tmp_path


@pytest.fixture
def pip_log(tmp_path: Path) -> Path:
    """An environment whose Python writes down what it is asked to install; it refuses what the file "refused" names."""
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f"""#!/bin/sh
echo "$*" >> {tmp_path}/pip.log
test ! -f {tmp_path}/refused || ! echo "$*" | grep -q -f {tmp_path}/refused
"""
    )
    python.chmod(0o755)
    return tmp_path / "pip.log"


def test_it_installs_once_and_again_when_the_metadata_or_a_shared_file_changes(clone: Path, pip_log: Path) -> None:
    for _ in range(2):
        environment.ensure(clone, clone / "env")
    assert len(pip_log.read_text().splitlines()) == 1
    assert f"-e {clone}[cpu,demo,test]" in pip_log.read_text()
    for changed in ("pyproject.toml", "jupyter_paddle_gpu/share/kernel.json", "labextension/src/index.ts"):
        (clone / changed).write_text("changed")
        environment.ensure(clone, clone / "env")
    assert len(pip_log.read_text().splitlines()) == 4


@pytest.mark.parametrize("version", ["v18.19.1", "v20.18.3", "cannot start", "v"])
def test_a_node_that_is_too_old_is_not_taken(
    clone: Path, pip_log: Path, node: Callable[[str], None], version: str
) -> None:
    node(version)
    environment.ensure(clone, clone / "env")
    assert f"-e {clone}[cpu,demo,test,node]" in pip_log.read_text()


def test_a_sidebar_that_could_not_be_built_is_told(
    clone: Path, pip_log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    environment.ensure(clone, clone / "env")
    assert "The sidebar could not be built" in capfd.readouterr().out
    (clone / environment.LAB_EXTENSION).parent.mkdir()
    (clone / environment.LAB_EXTENSION).write_text("{}")
    (clone / "pyproject.toml").write_text("changed")
    environment.ensure(clone, clone / "env")
    assert "sidebar" not in capfd.readouterr().out


def test_an_installation_that_failed_is_tried_again(clone: Path, pip_log: Path) -> None:
    (clone / "refused").write_text("demo")
    with pytest.raises(SetUpError, match="Is a package index reachable"):
        environment.ensure(clone, clone / "env")
    (clone / "refused").unlink()
    environment.ensure(clone, clone / "env")
    assert len(pip_log.read_text().splitlines()) == 2


def test_with_a_driver_paddle_comes_from_its_own_index(
    clone: Path, pip_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "DRIVER", clone / "pyproject.toml")  # some file that exists
    environment.ensure(clone, clone / "env")
    first, second = pip_log.read_text().splitlines()
    assert environment.PADDLE_INDEX in first
    assert first.endswith("paddlepaddle-gpu>=3")
    assert second.endswith("[demo,test]")


def test_without_that_index_the_cpu_build_is_taken_and_it_says_so(
    clone: Path, pip_log: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "DRIVER", clone / "pyproject.toml")
    (clone / "refused").write_text("paddlepaddle-gpu")
    environment.ensure(clone, clone / "env")
    assert pip_log.read_text().splitlines()[1].endswith("[cpu,demo,test]")
    assert "Paddle will not use the GPU" in capfd.readouterr().out


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 14, 0)])
def test_a_python_that_is_too_old_or_too_new_is_named(
    clone: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SetUpError, match=r"run it with Python 3\.10"):
        environment.ensure(clone, clone / "env")


def test_without_the_venv_module_the_package_is_named_and_nothing_is_left(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: Path, **options: bool) -> None:
        target.mkdir()
        raise subprocess.CalledProcessError(1, "ensurepip")  # as Debian's Python does without its package

    monkeypatch.setattr(venv, "create", refuse)
    with pytest.raises(SetUpError, match=r"apt install python3\.\d+-venv"):
        environment.ensure(clone, clone / "env")
    assert not (clone / "env").exists()
