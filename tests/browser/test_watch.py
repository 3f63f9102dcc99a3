"""The live view in a notebook, as who works in it sees it."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import PATIENCE_MS, Lab, says
from tests.server.conftest import Machine

LOAD = "%load_ext jupyter_paddle_gpu"
WATCH = "%paddle_gpu watch"


def notebook(lab: Lab, machine: Machine, *cells: str) -> None:
    """Open a notebook with these cells, and run them all."""
    kernel = {"name": "training", "display_name": "training", "language": "python"}
    sources: list[dict[str, object]] = [
        {"cell_type": "code", "id": f"c{i}", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
        for i, source in enumerate(cells)
    ]
    content = {"cells": sources, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (machine.root / "notebooks" / "a.ipynb").write_text(json.dumps(content))
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
