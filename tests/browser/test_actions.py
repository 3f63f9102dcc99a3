"""What people do in the sidebar: save, look at snapshots, restore, ask for a GPU, give it back."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.lab import Lab, says

KEEPS = "%load_ext jupyter_paddle_gpu\nfrom jupyter_paddle_gpu import guard\nepochs = 1\nguard.keep(epochs=epochs)"


def test_snapshots_are_made_kept_restored_and_deleted(lab: Lab) -> None:
    kernel = lab.open_notebook()
    card = lab.card("Notebooks", "train.ipynb")
    lab.run(kernel, KEEPS)
    card.get_by_role("button", name="Save train.ipynb now").click()
    says(card, "Saved.")
    lab.run(kernel, "epochs = 2")
    card.get_by_text("Snapshots").click()
    snapshot = card.get_by_role("list", name="Snapshots").get_by_role("listitem")
    says(snapshot, "KiB", "ago")
    snapshot.get_by_role("button", name="Pin").click()
    says(snapshot, "kept for good")
    lab.picture("snapshots")
    snapshot.get_by_role("button", name="Delete").click()
    lab.agree("Delete")
    says(card.get_by_role("alert"), "is pinned", "Unpin it first")
    snapshot.get_by_role("button", name="Unpin").click()
    expect(snapshot).not_to_contain_text("kept for good")
    snapshot.get_by_role("button", name="Restore").click()
    lab.agree("Restore")
    says(card, "is restored")
    assert lab.run(kernel, "print(epochs)") == "1\n"
    snapshot.get_by_role("button", name="Delete").click()
    lab.agree("Delete")
    says(card, "None yet.")


def test_a_gpu_is_given_back_and_asked_for_again(lab: Lab) -> None:
    lab.open_notebook()
    card = lab.card("Notebooks", "train.ipynb")
    card.get_by_role("button", name="Give back").click()
    lab.agree("Give it back")
    says(card, "No GPU")
    says(lab.panel, "1 of 1 GPUs free")
    lab.panel.get_by_text("Get a GPU").click()
    form = lab.panel.get_by_role("form")
    form.get_by_label("GPUs").fill("2")
    says(form, "This machine has only 1")
    form.get_by_role("button", name="Ask for it").click()
    says(form.get_by_role("alert"), "1")
    lab.picture("refused")
    form.get_by_label("GPUs").fill("1")
    says(form, "Free now.")
    form.get_by_role("button", name="Ask for it").click()
    says(card, "GPU 0", "Running")
