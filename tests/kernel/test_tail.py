"""The live view that ends what ``request`` and ``restore`` show: there where somebody looks, and once."""

from __future__ import annotations

import pytest

from jupyter_paddle_gpu.core.wire import Watch
from jupyter_paddle_gpu.kernel.successor import TARGET
from tests.kernel.kernels import AgentEnd, Cell, Notebook
from tests.kernel.test_watch import KEEP, SESSION, VIEW

REQUEST = "%paddle_gpu request --grace 60s"


@pytest.fixture
def opened(evictable: Notebook, agent: AgentEnd) -> Notebook:
    agent.view = SESSION
    return evictable


def views(cell: Cell) -> list[str]:
    """The screens that stand in a cell's output now."""
    return [data[VIEW]["model_id"] for data in cell.displays.values() if VIEW in data]


def look(opened: Notebook, agent: AgentEnd, screen: str) -> None:
    """Say that a browser shows this screen, and wait until the agent looks for it."""
    body = {"comm_id": screen, "data": {"method": "custom", "content": {"shown": True, "browser": "a"}}}
    opened.client.shell_channel.send(opened.client.session.msg("comm_msg", body))
    while agent.wait(Watch).period_s != 1.0:
        pass


def test_a_request_in_a_page_ends_in_the_live_view(opened: Notebook) -> None:
    cell = opened.page(REQUEST)
    said, live = cell.data
    assert said["text/plain"].startswith("Requested")
    assert VIEW not in said
    assert "running · notebook · GPU" in live["text/plain"]
    assert views(cell) == [live[VIEW]["model_id"]]


def test_there_is_one_and_it_moves_to_the_last_cell(opened: Notebook) -> None:
    opened.good(KEEP)
    opened.good("%paddle_gpu save")
    first = opened.page(REQUEST)
    (screen,) = views(first)
    second = opened.page("%paddle_gpu restore")
    assert views(second) == [screen]
    assert views(first) == []
    (left,) = first.displays.values()
    assert "last snapshot  no position" in left["text/plain"]
    assert "<table" in left["text/html"]


def test_it_shows_what_was_just_asked_for(opened: Notebook, agent: AgentEnd) -> None:
    opened.page(REQUEST)
    agent.view = {**SESSION, "request": {**SESSION["request"], "tier": "batch"}}
    assert "running · batch · GPU" in opened.page(REQUEST).data[1]["text/plain"]


def test_who_sees_a_screen_already_gets_no_second_one(opened: Notebook, agent: AgentEnd) -> None:
    look(opened, agent, opened.page("%paddle_gpu watch").data[0][VIEW]["model_id"])
    assert len(opened.page(REQUEST).data) == 1


def test_a_closed_one_is_made_anew(opened: Notebook, agent: AgentEnd) -> None:
    opened.page(REQUEST)
    opened.good("import ipywidgets; ipywidgets.Widget.close_all()")
    (screen,) = views(opened.page(REQUEST))
    look(opened, agent, screen)


def test_where_nobody_looks_there_is_none(opened: Notebook) -> None:
    """A client that names no cell: a tool that executes notebooks, or a console."""
    cell = opened.run(REQUEST)
    assert len(cell.data) == 1
    assert opened.good("import sys; print('anywidget' in sys.modules)") == "False\n"


def test_a_request_is_good_without_its_view(opened: Notebook) -> None:
    opened.good("import sys; sys.modules['anywidget'] = None")
    cell = opened.page(REQUEST)
    assert not cell.errors
    assert len(cell.data) == 1


def asked(opened: Notebook) -> dict[str, object]:
    """What a page gets that shows the screen of a kernel that has ended, and asks this one for its own."""
    session = opened.client.session
    opening = session.msg("comm_open", {"comm_id": "page", "target_name": TARGET, "data": {}})
    said = opened.cells[opening["header"]["msg_id"]] = Cell()
    opened.client.shell_channel.send(opening)
    opened.read(lambda: bool(said.comms.get("page")))
    answer: dict[str, object] = said.comms["page"][0]
    return answer


def test_a_page_finds_the_screen_of_the_kernel_that_its_notebook_has_now(opened: Notebook) -> None:
    screen = asked(opened)["data"]["screen"]  # type: ignore[index]
    assert views(opened.page(REQUEST)) == [screen]


def test_a_page_that_asks_in_vain_is_told(opened: Notebook) -> None:
    opened.good("import sys; sys.modules['anywidget'] = None")
    assert "screen" not in asked(opened)["data"]  # type: ignore[operator]
