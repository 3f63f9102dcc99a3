"""The sidebar while a notebook runs, loses its GPU, waits, and comes back."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.lab import Lab, says
from tests.server.conftest import Machine

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"


def test_without_a_session_it_says_how_to_get_one(lab: Lab) -> None:
    lab.open()
    says(lab.panel, "No notebook runs on a GPU", "Paddle GPU", "1 of 1 GPUs free")
    lab.picture("idle")


def test_a_session_is_seen_from_its_start_to_its_end(lab: Lab, machine: Machine) -> None:
    kernel = lab.open_notebook()
    notebook, gpu = lab.card("Notebooks", "train.ipynb"), lab.card("Devices", "GPU 0")
    says(notebook, "Running", "GPU 0", "notebook")
    says(gpu, "Busy", "train.ipynb", "GiB")
    says(lab.panel, "0 of 1 GPUs free")
    says(lab.status_item, "GPU 0", "Running")
    lab.picture("running")
    lab.run(kernel, STUBBORN)
    ticket = machine.file("urgent")
    assert not ticket.poll()
    says(notebook, "Saving", "urgent job")
    expect(notebook.get_by_role("timer")).to_have_text(re.compile(r"^1?\d s$"))
    says(lab.notification, "train.ipynb: Saving")
    lab.picture("countdown")
    assert ticket.wait(timeout_s=40)
    says(notebook, "Waiting", "position 1", "held by urgent job")
    says(lab.panel, "GPU 0: urgent job (urgent)")
    expect(gpu).to_have_count(0)
    lab.picture("waiting")
    ticket.release()
    says(notebook, "Running")
    says(lab.panel.get_by_role("region", name="What happened"), "Saving", "Waiting", "Coming back", "Running")
    lab.picture("back")
    lab.server.ask("DELETE", f"api/kernels/{kernel}")
    expect(notebook).to_have_count(0)
