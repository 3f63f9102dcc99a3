"""What a kernel says to a user who speaks Chinese."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.telemetry import HostSample, Reading
from jupyter_paddle_gpu.core.wire import Seen
from jupyter_paddle_gpu.kernel.commands import COMMANDS
from tests.english import english
from tests.kernel.kernels import AgentEnd, Cell, Notebook, notebook
from tests.kernel.test_watch import KEEP, SESSION, Browser


@pytest.fixture
def opened(place: Path, agent: AgentEnd) -> Iterator[Notebook]:
    agent.view = SESSION
    with notebook(place, agent, {"JUPYTER_PADDLE_GPU_LANGUAGE": "", "LANGUAGE": "zh_CN:en"}) as opened:
        yield opened


def shown(cell: Cell) -> str:
    return "\n".join([cell.text, *(data["text/plain"] for data in cell.data), cell.error.partition("UsageError: ")[2]])


def test_what_reads_as_english() -> None:
    assert english("保存：%paddle_gpu request --every 10m 可在 /tmp/a b/c 中") == []
    assert english("保存：nothing to save yet") == ["nothing to save yet"]


def test_all_commands_speak_chinese(opened: Notebook) -> None:
    opened.good(KEEP)
    lines = [
        *COMMANDS, "request --grace 60s", "keep best", "keep --drop best", "keep nothing_here", "restore 99",
        "snapshots show", "snapshots verify", "snapshots pin", "snapshots unpin", "snapshots delete",
        "snapshots delete 7", "statsu", "status now", "request --gpu 2", "request --gpus two", "request --gpus -1",
        "request --grace soon",
        "request --grace 0.1s", "request --memory lots", "request --tier vip", "request --every 1s",
        "'",
    ]  # fmt: skip
    said = {line: shown(opened.run(f"%paddle_gpu {line}")) for line in lines if line != "release"}
    said |= {f"{name} --help": shown(opened.run(f"%paddle_gpu {name} --help")) for name in ["", *COMMANDS]}
    assert {line: found for line, text in said.items() if (found := english(text))} == {}
    assert {line: text for line, text in said.items() if not re.search("[\u4e00-\u9fff]", text)} == {}


def test_the_last_word_of_an_evicted_kernel_is_chinese(opened: Notebook, agent: AgentEnd) -> None:
    cell = opened.begin("import time\nprint('on')\nwhile True: time.sleep(0.01)")
    opened.read(lambda: bool(cell.text))
    agent.notice(Cause.PREEMPTED, remaining_s=10.0, position=2)
    opened.end(cell)
    assert cell.error == "Evicted: 没有可保存的内容，正在等待 GPU，排第 2 位"
    assert "单元格停在第 3 行" in "".join(cell.replies[0]["traceback"])
    opened.exit_code()


def test_the_live_view_says_in_chinese_why_something_is_not_seen(opened: Notebook, agent: AgentEnd) -> None:
    browser = Browser(opened, agent)
    agent.send(Seen(Reading(time.time(), (), "this device does not tell it", HostSample())))
    opened.read(lambda: any(now["reading"]["fault"] == "此设备不提供" for now in browser.told("now")))
