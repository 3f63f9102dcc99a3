"""The live view as a browser gets it: comm messages of a real kernel, read where a browser reads them."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_paddle_gpu.core.codec import to_plain
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.core.telemetry import GpuSample, HostSample, Reading
from jupyter_paddle_gpu.core.wire import Call, Seen, Served, Watch
from jupyter_paddle_gpu.kernel.widget import texts
from jupyter_paddle_gpu.kernel.widget.screen import SCRIPTS
from jupyter_paddle_gpu.server.view import SessionView
from tests.kernel.kernels import AgentEnd, Notebook

HERE = Path(texts.__file__).parent
VIEW = "application/vnd.jupyter.widget-view+json"
REQUESTED = GpuRequest(gpus=1, tier="notebook", grace_s=60.0)
SESSION = to_plain(SessionView("5e551011", "a.ipynb", "paddle-gpu", State.RUNNING, REQUESTED, ("0",), "GPU"))
BUSY = "import time\nprint('on')\nwhile True: time.sleep(0.01)"
KEEP = "from jupyter_paddle_gpu import guard\nbest = [1]\nguard.keep(best=best)"


class Browser:
    """What a page does with one screen of a notebook."""

    def __init__(self, opened: Notebook, agent: AgentEnd) -> None:
        self.notebook, self.agent = opened, agent
        agent.view = SESSION
        cell = opened.begin("%paddle_gpu watch")
        self.see(40)
        opened.end(cell)
        assert not cell.errors, cell.error
        self.bundle = cell.data[0]
        self.comm = self.bundle[VIEW]["model_id"]
        self.until_asked(5.0)  # after the glance for the picture: perhaps somebody looks

    def see(self, percent: float) -> None:
        """The agent sees its GPU at work, as soon as it is asked to look."""
        self.agent.wait(Watch)
        self.reading(percent)

    def reading(self, percent: float) -> None:
        gpu = GpuSample("GPU-0", name="H200", utilization_percent=percent, memory_used_bytes=1, memory_total_bytes=4)
        self.agent.send(Seen(Reading(time.time(), (gpu,), None, HostSample(50.0, 2.0, 2**30, 4 * 2**30))))

    def send(self, **content: object) -> None:
        """Say something to the kernel, as the widget's JavaScript does."""
        session = self.notebook.client.session
        body = {"comm_id": self.comm, "data": {"method": "custom", "content": content}}
        self.notebook.client.shell_channel.send(session.msg("comm_msg", body))

    def told(self, name: str) -> list[dict[str, Any]]:
        """What this screen has been told of one trait."""
        states = [
            message["content"]["data"]["state"] for message in self.notebook.own if "comm_id" in message["content"]
        ]
        return [state[name] for state in states if name in state]

    def load(self) -> float | None:
        """The GPU's load as it is shown now; None: not known, or nothing was told."""
        readings = [now["reading"] for now in self.told("now") if now["reading"]]
        load: float | None = readings[-1]["gpus"][0]["utilization_percent"] if readings else None
        return load

    def until_asked(self, period_s: float) -> None:
        """Wait until the agent is asked to look so often."""
        while self.agent.wait(Watch).period_s != period_s:
            pass


@pytest.fixture
def browser(evictable: Notebook, agent: AgentEnd) -> Browser:
    return Browser(evictable, agent)


def test_a_cell_that_runs_is_watched_and_its_output_is_its_own(browser: Browser) -> None:
    opened = browser.notebook
    cell = opened.begin(BUSY)
    opened.read(lambda: bool(cell.text))
    browser.reading(77)
    opened.read(lambda: browser.load() == 77)
    assert (cell.data, cell.text) == ([], "on\n")
    now = browser.told("now")[-1]
    assert now["standing"]["state"] == "running"
    assert (now["standing"]["tier"], now["standing"]["grace_s"]) == ("notebook", 60.0)
    opened.manager.interrupt_kernel()
    opened.end(cell)


def test_an_exported_page_and_a_terminal_get_a_picture(browser: Browser) -> None:
    text = browser.bundle["text/plain"]
    assert "running · notebook · GPU" in text
    assert "load 40 %, memory 1 B of 4 B" in text
    assert "1.0 GiB of 4.0 GiB" in text
    assert "<table" in browser.bundle["text/html"]


def test_a_hidden_screen_costs_nothing(browser: Browser) -> None:
    browser.send(shown=True, browser="a")
    browser.until_asked(1.0)
    browser.send(shown=False, browser="a")
    browser.until_asked(0.0)
    browser.notebook.good("seen = 2")
    browser.notebook.own.clear()
    browser.notebook.good("import time; time.sleep(2)")
    assert browser.told("now") == []


def test_who_looks_again_sees_at_once_beside_a_running_cell(browser: Browser) -> None:
    opened = browser.notebook
    browser.send(shown=False, browser="a")
    browser.until_asked(0.0)
    cell = opened.begin(BUSY)
    opened.read(lambda: bool(cell.text))
    browser.send(shown=True, browser="a")
    browser.until_asked(1.0)
    browser.reading(66)
    opened.read(lambda: browser.load() == 66)
    opened.manager.interrupt_kernel()
    opened.end(cell)


def test_a_closed_screen_is_told_no_more(browser: Browser) -> None:
    browser.notebook.good("import ipywidgets; ipywidgets.Widget.close_all()")
    browser.until_asked(0.0)


def test_all_screens_share_one_look(browser: Browser) -> None:
    opened = browser.notebook
    second = opened.run("%paddle_gpu watch")
    browser.send(shown=True, browser="a")
    browser.until_asked(1.0)
    opened.own.clear()
    browser.reading(55)
    both = {browser.comm, second.data[0][VIEW]["model_id"]}
    opened.read(lambda: both <= {message["content"].get("comm_id") for message in opened.own})


@pytest.mark.parametrize("text", ["saved", "nothing to save"])
def test_the_last_word_says_what_was_saved(browser: Browser, text: str) -> None:
    opened = browser.notebook
    if text == "saved":
        opened.good(KEEP)
    opened.own.clear()
    browser.agent.notice(Cause.PREEMPTED, remaining_s=20.0, position=2)
    opened.read(lambda: bool(browser.told("now")) and bool(browser.told("now")[-1]["leaving"]["text"]))
    browser.agent.wait(Served)
    opened.exit_code()
    first, *_, final = (now["leaving"] for now in browser.told("now") if now["leaving"])
    assert first["outcome"] is None
    assert 0 < first["remaining_s"] <= first["grace_s"] == 20.0
    assert text in final["text"]
    assert "waiting for a GPU, position 2" in final["text"]


def test_buttons_work_beside_a_running_cell(browser: Browser) -> None:
    opened = browser.notebook
    opened.good(KEEP)
    cell = opened.begin(BUSY)
    opened.read(lambda: bool(cell.text))
    browser.send(press="save")
    opened.read(lambda: [said["phase"] for said in browser.told("said")] == ["begun", "done"])
    assert browser.told("said")[-1]["nbytes"] > 0
    opened.manager.interrupt_kernel()
    opened.end(cell)


def test_a_button_says_what_went_wrong(browser: Browser) -> None:
    browser.send(press="save")
    browser.notebook.read(lambda: [said["phase"] for said in browser.told("said")] == ["begun", "failed"])
    assert "nothing to save" in browser.told("said")[-1]["text"]


def test_the_gpu_is_released_by_a_button(browser: Browser) -> None:
    browser.send(press="release")
    while browser.agent.wait(Call).method != "release":
        pass


def test_without_anywidget_the_same_stands_still(evictable: Notebook, agent: AgentEnd) -> None:
    agent.view = SESSION
    cell = evictable.run("import sys; sys.modules['anywidget'] = None\n%paddle_gpu watch")
    assert VIEW not in cell.data[0]
    assert "running · notebook" in cell.data[0]["text/plain"]
    assert "pip install" in cell.data[0]["text/plain"]


def test_nothing_of_it_is_loaded_before_it_is_shown(evictable: Notebook) -> None:
    ours = "name.startswith(('anywidget', 'ipywidgets', 'jupyter_paddle_gpu.kernel.widget'))"
    loaded = evictable.good(f"import sys; print([name for name in sys.modules if {ours}])")
    assert loaded == "[]\n"


def test_it_speaks_all_its_words_in_each_language() -> None:
    english, *others = texts.texts().values()
    assert others
    assert all(words.keys() == english.keys() for words in others)


def test_it_is_small() -> None:
    parts = [(HERE / name).read_bytes() for name in (*SCRIPTS, "screen.css", "texts.json")]
    assert len(gzip.compress(b"".join(parts))) <= 10_000
