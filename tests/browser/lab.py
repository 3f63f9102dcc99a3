"""JupyterLab in a page, and the sidebar in it, by the names that a screen reader says."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
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

    def open(self, path: str = "lab") -> None:
        """Load a page of JupyterLab or Notebook with the sidebar shown."""
        self.page.goto(f"http://{self.server.base}{path}?token={TOKEN}")
        self.tab.click()
        expect(self.panel).to_be_visible()

    def open_notebook(self, name: str = "train.ipynb", kernel: str = "training", app: str = "lab/tree") -> str:
        """Load a new notebook with its kernel, and return the kernel's id once its card says that it runs."""
        metadata = {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}}
        notebook = {"cells": [], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        body = {"type": "notebook", "format": "json", "content": notebook}
        self.server.ask("PUT", f"api/contents/{name}", body)
        self.open(f"{app}/{name}")
        says(self.card("Notebooks", name), "Running")
        return str(self.server.ask("GET", "api/sessions")[0]["kernel"]["id"])

    def run(self, kernel: str, code: str) -> str:
        """Run one cell as another client of the kernel. In a thread: Playwright has this one's event loop."""
        with ThreadPoolExecutor() as pool:
            return pool.submit(asyncio.run, self.server.run(kernel, code)).result()

    def agree(self, button: str) -> None:
        """Say yes in the dialog that is open."""
        self.page.get_by_role("dialog").get_by_role("button", name=button).click()

    @property
    def tab(self) -> Locator:
        """What shows and hides the sidebar."""
        return self.page.get_by_role("tab", name="GPU sessions").locator("visible=true")

    @property
    def panel(self) -> Locator:
        """The sidebar."""
        return self.page.get_by_role("region", name="GPU sessions")

    @property
    def status_item(self) -> Locator:
        """What the status bar says."""
        return self.page.get_by_title("Show GPU sessions")

    @property
    def notification(self) -> Locator:
        """The notices that are shown."""
        return self.page.get_by_role("alert")

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
