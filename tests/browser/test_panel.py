"""The sidebar while a notebook runs, loses its GPU, waits, and comes back."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.lab import Lab, says
from tests.server.conftest import Machine


def test_without_a_session_it_says_how_to_get_one(lab: Lab) -> None:
    lab.show_panel()
    says(lab.panel, "No notebook runs on a GPU", "Paddle GPU")
    lab.picture("idle")


def test_a_session_is_seen_from_its_start_to_its_end(lab: Lab, machine: Machine) -> None:
    lab.show_panel()
    kernel = lab.server.ask("POST", "api/kernels", {"name": "training"})["id"]
    notebook, gpu = lab.card("Notebooks", "training"), lab.card("Devices", "GPU 0")
    says(notebook, "Running", "GPU 0", "notebook")
    says(gpu, "Busy", "training", "GiB")
    lab.picture("running")
    ticket = machine.file("urgent")
    assert ticket.wait(timeout_s=20)
    says(notebook, "Waiting", "position 1", "held by urgent job")
    expect(gpu).to_have_count(0)
    lab.picture("waiting")
    ticket.release()
    says(notebook, "Running")
    lab.server.ask("DELETE", f"api/kernels/{kernel}")
    expect(notebook).to_have_count(0)
