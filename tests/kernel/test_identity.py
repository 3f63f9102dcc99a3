"""Each notebook has a snapshot directory of its own, with a name that people can read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_paddle_gpu.checkpoint.where import slug
from jupyter_paddle_gpu.core.agentspec import ENV_AGENT, ENV_SESSION
from jupyter_paddle_gpu.kernel.identity import Identity


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_PADDLE_GPU_SNAPSHOTS", str(tmp_path))
    return tmp_path


def directory_of(notebook: str) -> Path:
    return Identity.read({"JPY_SESSION_NAME": notebook, ENV_SESSION: "s1"}).snapshot_directory()


def test_a_chinese_name_with_a_space_stays_readable(root: Path) -> None:
    directory = directory_of("/home/li/训练 1.ipynb")
    assert directory.parent == root
    assert directory.name.startswith("训练-1-")
    assert " " not in directory.name


def test_two_notebooks_of_one_name_in_two_folders_do_not_share() -> None:
    one, other = directory_of("/a/train.ipynb"), directory_of("/b/train.ipynb")
    assert one != other
    assert one == directory_of("/a/train.ipynb")


def test_without_a_notebook_the_session_has_the_directory(root: Path) -> None:
    assert Identity.read({ENV_SESSION: "abc"}).snapshot_directory() == root / "session-abc"


def test_without_either_the_working_directory_has_it(root: Path) -> None:
    directory = Identity.read({}).snapshot_directory(Path("/srv/my models"))
    assert directory.parent == root
    assert directory.name.startswith("my-models-")


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "", "/", "训" * 500, "a\0b", ".hidden", "\ud800"])
def test_no_name_leaves_the_root_or_is_too_long(root: Path, name: str) -> None:
    assert "/" not in slug(name)
    assert 0 < len(os.fsencode(slug(name))) <= 80
    assert slug(name)[0] != "."


def test_what_a_subprocess_must_not_inherit_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV_AGENT, "/run/agent.sock")
    monkeypatch.setenv(ENV_SESSION, "abc")
    identity = Identity.take()
    assert (identity.agent, identity.session) == (Path("/run/agent.sock"), "abc")
    assert ENV_AGENT not in os.environ
    assert ENV_SESSION not in os.environ
