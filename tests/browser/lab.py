"""JupyterLab in a page, and the sidebar in it, by the names that a screen reader says."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.server.jupyter import TOKEN, JupyterServer

PICTURES = Path(__file__).resolve().parents[2] / "out" / "screens"  # for people to look at
PATIENCE_MS = 30_000


class Lab:
    """One open page."""

    def __init__(self, page: Page, server: JupyterServer) -> None:
        self.page = page
        self.server = server
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.set_default_timeout(PATIENCE_MS)

    def open(self, app: str = "lab") -> None:
        """Load JupyterLab or, as ``tree``, Notebook, and wait until it is there."""
        self.page.goto(f"http://{self.server.base}{app}?token={TOKEN}")
        expect(self.tab).to_be_visible(timeout=PATIENCE_MS)

    @property
    def tab(self) -> Locator:
        """What shows and hides the sidebar."""
        return self.page.get_by_role("tab", name="GPU sessions").locator("visible=true")

    @property
    def panel(self) -> Locator:
        """The sidebar."""
        return self.page.get_by_role("region", name="GPU sessions")

    def show_panel(self) -> None:
        """Open the sidebar."""
        self.tab.click()
        expect(self.panel).to_be_visible()

    def card(self, section: str, name: str | re.Pattern[str]) -> Locator:
        """One card of the sidebar's "Notebooks" or "Devices"."""
        return self.panel.get_by_role("region", name=section).get_by_role("listitem", name=name)

    def picture(self, name: str) -> None:
        """Leave a picture of the page among the tests' artefacts."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png")


def says(locator: Locator, *texts: str) -> None:
    """Wait until an element says each of ``texts``."""
    for text in texts:
        expect(locator).to_contain_text(text, timeout=PATIENCE_MS)
