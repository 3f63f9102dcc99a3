"""Files beside the notebook that hide Python's own modules are named, and do not hide them from us."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jupyter_paddle_gpu.kernel.shadow import shadow_message, shadowing_files, without_users_directory


def test_files_that_hide_a_module_are_found(tmp_path: Path) -> None:
    for name in ("dl.py", "random.py", "train.py", "signal.py", "test.py", "训练.py", "random.txt"):
        (tmp_path / name).touch()
    (tmp_path / "json").mkdir()  # a folder without __init__.py hides nothing
    (tmp_path / "email").mkdir()
    (tmp_path / "email" / "__init__.py").touch()
    found = shadowing_files(tmp_path, [str(tmp_path), *sys.path])
    assert [path.name for path in found] == ["dl.py", "email", "random.py", "signal.py"]


def test_behind_pythons_own_library_only_others_are_hidden(tmp_path: Path) -> None:
    for name in ("dl.py", "random.py", "numpy.py"):
        (tmp_path / name).touch()
    own = str(Path(os.__file__).parent)
    assert [path.name for path in shadowing_files(tmp_path, [own, str(tmp_path)])] == ["dl.py", "numpy.py"]
    assert shadowing_files(tmp_path, [own]) == []


def test_a_directory_that_is_not_there_hides_nothing(tmp_path: Path) -> None:
    assert shadowing_files(tmp_path / "gone", [str(tmp_path / "gone")]) == []


def test_our_imports_pass_the_working_directory_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    before = list(sys.path)
    with without_users_directory():
        assert "" not in sys.path
        assert str(tmp_path) not in sys.path
    assert sys.path == before


def test_the_message_names_file_folder_and_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert shadow_message() is None
    (tmp_path / "random.py").touch()
    message = shadow_message() or ""
    assert f"random.py in {tmp_path} hides the module 'random'" in message
    assert "Rename it" in message
