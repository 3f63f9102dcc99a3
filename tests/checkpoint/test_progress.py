"""How far a long save is."""

from __future__ import annotations

import threading
import time

import pytest

from jupyter_paddle_gpu.checkpoint.progress import bar, progress


def test_a_bar_says_share_size_and_time_left() -> None:
    assert bar("saved", 10**9, 4 * 10**9, 2.0) == (
        "paddle-gpu: [######..................]  25% of 4.0 GB saved, 6.0 s left"
    )
    assert bar("read", 9, 0, 0.0).endswith("100% of 0 B read, 0.0 s left")


def test_what_is_quick_says_nothing_and_what_is_long_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress("saved", 100) as tell:
        tell(50)
    assert capsys.readouterr().err == ""
    now_s = time.monotonic()
    with progress("saved", 100) as tell:
        monkeypatch.setattr(time, "monotonic", lambda: now_s + 10)
        tell(50)
        tell(51)
    assert capsys.readouterr().err.count("50% of 100 B saved, 10") == 1


def test_another_thread_writes_into_nobodys_cell(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with progress("saved", 100) as tell:
            time.sleep(1.1)
            tell(50)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert capsys.readouterr().err == ""
