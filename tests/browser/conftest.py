"""One Chromium for all tests here; a server, a machine with GPUs that a library plays, and a page for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from jupyter_paddle_gpu.admin.environment import LAB_EXTENSION
from tests.browser.browsers import chromium
from tests.browser.lab import Lab
from tests.server.conftest import Machine, machine, runtime
from tests.server.jupyter import JupyterServer
from tests.telemetry import driver

__all__ = ["machine", "runtime"]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="package")  # while it runs, an event loop runs in this thread: others could not begin their own
def browser() -> Iterator[Browser]:
    """Return Chromium. Fails where the sidebar is not built."""
    assert (ROOT / LAB_EXTENSION).exists(), "The sidebar is not built: run `python3 -m tests`, which builds it."
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])  # root's needs that
        yield browser
        browser.close()


@pytest.fixture
def gpus(tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> driver.Machine:
    """The GPUs of the test's machine: one, until the test says otherwise."""
    return driver.play(tmp_path, monkeypatch, "gpus 1")


def user_setting(settings: Path, plugin: str, **values: object) -> None:
    """Write what a user has set in JupyterLab."""
    path = settings / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


@pytest.fixture
def server(machine: Machine, gpus: driver.Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[JupyterServer]:
    machine.add_kernelspec("training", {"gpus": 1, "grace": "20s"})
    settings = machine.root / "settings"
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(settings))
    user_setting(settings, "apputils-extension/notification", fetchNews="false")  # there is no news on this machine
    apps = "--ServerApp.jpserver_extensions={'jupyterlab': True, 'notebook': True}"
    server = JupyterServer(machine.root, "server", apps)
    yield server
    server.stop()


@pytest.fixture
def lab(browser: Browser, server: JupyterServer) -> Iterator[Lab]:
    """A page that is not loaded yet; the test fails where a script of the page failed."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    lab = Lab(context.new_page(), server)
    yield lab
    context.close()
    assert lab.errors == []
