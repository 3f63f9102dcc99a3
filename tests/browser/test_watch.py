"""The live view in a notebook, as who works in it sees it."""

from __future__ import annotations

import json
import re

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Locator, expect

from tests.browser.lab import PATIENCE_MS, Lab, says
from tests.server.conftest import Machine

LOAD = "%load_ext jupyter_paddle_gpu"
WATCH = "%paddle_gpu watch"
REQUEST = "%paddle_gpu request --grace 30s"


def content(*cells: str, kernel_name: str = "training") -> dict[str, object]:
    """Return a notebook with these cells."""
    kernel = {"name": kernel_name, "display_name": kernel_name, "language": "python"}
    sources: list[dict[str, object]] = [
        {"cell_type": "code", "id": f"c{i}", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
        for i, source in enumerate(cells)
    ]
    return {"cells": sources, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def notebook(lab: Lab, machine: Machine, *cells: str) -> None:
    """Open a notebook with these cells, and run them all."""
    (machine.root / "notebooks" / "a.ipynb").write_text(json.dumps(content(*cells)))
    lab.open("lab/tree/a.ipynb")
    expect(lab.page.locator(".jp-Notebook")).to_be_visible(timeout=PATIENCE_MS)
    expect(lab.page.get_by_role("button", name="training | Idle")).to_be_visible(timeout=PATIENCE_MS)
    lab.page.get_by_role("menuitem", name="Run", exact=True).click()
    lab.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


@pytest.fixture
def screen(lab: Lab, machine: Machine) -> Locator:
    notebook(lab, machine, LOAD, WATCH)
    return lab.page.get_by_role("group", name="Paddle GPU")


def test_it_shows_the_gpu_live(lab: Lab, screen: Locator) -> None:
    says(screen, "running", "notebook", "GPU", "last snapshot: none yet")
    screen.get_by_role("button", name="Show more").click()
    says(screen, "host", "cores")
    lab.picture("watch")


def test_a_request_ends_in_it_and_it_goes_with_the_next_one(lab: Lab, machine: Machine) -> None:
    notebook(lab, machine, LOAD, REQUEST, REQUEST)
    screen = lab.page.get_by_role("group", name="Paddle GPU")
    says(screen, "running", "notebook", "GPU")
    first, second = (lab.page.locator(".jp-CodeCell").nth(i) for i in (1, 2))
    says(first, "Requested", "as of")
    expect(first.get_by_role("group", name="Paddle GPU")).to_have_count(0)
    expect(second.get_by_role("group", name="Paddle GPU")).to_be_visible()
    lab.picture("watch-request")


def test_it_goes_with_the_notebook_to_another_kernel(lab: Lab, machine: Machine) -> None:
    """From one that is not ours, and back from an eviction: the same view in the same cell."""
    cells = content(LOAD, "%paddle_gpu request --grace 30s", kernel_name="python3")
    (machine.root / "notebooks" / "a.ipynb").write_text(json.dumps(cells))
    lab.open("lab/tree/a.ipynb")
    expect(lab.page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible(timeout=PATIENCE_MS)
    lab.page.locator(".jp-Notebook .jp-InputPrompt").first.click()
    for _ in range(2):
        lab.page.keyboard.press("Shift+Enter")
    screen = lab.page.get_by_role("group", name="Paddle GPU")
    says(screen, "no session")
    says(screen, "running", "notebook", "GPU")
    lab.picture("watch-moved")
    ticket = machine.file()
    assert ticket.wait(timeout_s=40), "the GPU was not given up"
    says(screen, "nothing to save")
    ticket.release()
    says(screen, "running", "notebook", "GPU", "last snapshot: none yet")


def test_a_saved_notebook_stays_saved_while_it_runs_and_is_whole_without_it(lab: Lab, machine: Machine) -> None:
    notebook(lab, machine, LOAD, REQUEST)
    screen = lab.page.get_by_role("group", name="Paddle GPU")
    says(screen, "running", "notebook", "last snapshot: none yet")
    lab.page.locator(".jp-Notebook .jp-InputPrompt").first.click()
    lab.page.keyboard.press("Control+s")
    tab = lab.page.get_by_role("tab", name="a.ipynb")
    expect(tab).not_to_have_class(re.compile("jp-mod-dirty"))
    screen.get_by_role("button", name="Show more").click()
    host = screen.get_by_text("cores")
    told = host.inner_text()
    expect(host).not_to_have_text(told, timeout=PATIENCE_MS)  # it goes on
    expect(tab).not_to_have_class(re.compile("jp-mod-dirty"))
    saved = nbformat.read(machine.root / "notebooks" / "a.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    assert "widgets" not in saved.metadata
    for form in ("text/plain", "text/html"):  # what GitHub, nbviewer and others without the widget show
        assert "running · notebook · GPU" in saved.cells[1].outputs[-1].data[form]
    page, _ = HTMLExporter().from_notebook_node(saved)  # type: ignore[no-untyped-call]
    lab.page.set_content(page)
    says(lab.page.locator("body"), "running · notebook · GPU", "none yet")
    lab.picture("watch-exported")


def test_a_notebook_that_is_opened_again_shows_its_kernel_of_now(lab: Lab, machine: Machine) -> None:
    path = machine.root / "notebooks" / "a.ipynb"
    path.write_text(json.dumps(content("%paddle_gpu request --grace 30s", kernel_name="paddle-gpu")))
    lab.open("lab/tree/a.ipynb")
    says(lab.card(lab.notebooks, "a.ipynb"), lab.running)
    lab.page.locator(".jp-Notebook .jp-InputPrompt").first.click()
    lab.page.keyboard.press("Control+Enter")
    screen = lab.page.get_by_role("group", name="Paddle GPU")
    says(screen, "running", "notebook")
    lab.page.keyboard.press("Control+s")
    expect(lab.page.get_by_role("tab", name="a.ipynb")).not_to_have_class(re.compile("jp-mod-dirty"))
    address = lab.page.url
    lab.page.goto("about:blank")
    (session,) = lab.server.ask("GET", "api/sessions")
    lab.server.ask("DELETE", f"api/sessions/{session['id']}")
    lab.page.goto(address)
    says(screen, "running", "notebook", "last snapshot: none yet")
    lab.picture("watch-opened-again")
