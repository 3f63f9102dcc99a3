"""JupyterLab in a page, and the sidebar in it, by the names that a screen reader says."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Error, Locator, Page, expect

from tests.server.jupyter import TOKEN, JupyterServer

PICTURES = Path(__file__).resolve().parents[2] / "out" / "screens"  # for people to look at
PATIENCE_MS = 60_000  # JupyterLab loads slowly on a busy machine


class Lab:
    """One open page."""

    def __init__(self, page: Page, server: JupyterServer) -> None:
        self.page = page
        self.server = server
        self.title = "GPU sessions"  # this and the next ones: in the language of the page
        self.notebooks, self.running = "Notebooks", "Running"
        self.errors: list[str] = []
        page.on("pageerror", self._note)
        page.set_default_timeout(PATIENCE_MS)

    def _note(self, error: Error) -> None:
        if "jupyter-paddle-gpu" in (error.stack or ""):  # JupyterLab's and Notebook's own are not ours to judge
            self.errors.append(f"{error}\n{error.stack}")

    def open(self, path: str = "lab") -> None:
        """Load a page of JupyterLab or Notebook with the sidebar shown."""
        self.page.goto(f"http://{self.server.base}{path}?token={TOKEN}")
        if path.startswith("notebooks"):
            self.page.get_by_role("menuitem", name="Kernel").click()
            self.page.get_by_role("menuitem", name="Show GPU Sessions").click()
        else:
            self.tab.click()
        expect(self.panel).to_be_visible()

    def open_notebook(self, name: str = "train.ipynb", kernel: str = "training", app: str = "lab/tree") -> str:
        """Load a new notebook with its kernel, and return the kernel's id once its card says that it runs."""
        metadata = {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}}
        notebook = {"cells": [], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        body = {"type": "notebook", "format": "json", "content": notebook}
        self.server.ask("PUT", f"api/contents/{name}", body)
        self.open(f"{app}/{name}")
        says(self.card(self.notebooks, name), self.running)
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
        return self.page.get_by_role("tab", name=self.title).locator("visible=true")

    @property
    def panel(self) -> Locator:
        """The sidebar."""
        return self.page.get_by_role("region", name=self.title)

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
