"""JupyterLab in Chinese: what we say in the notebook and beside it, from the request to the wait for a GPU."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.browser.conftest import user_setting
from tests.browser.lab import PATIENCE_MS, Lab, says
from tests.browser.test_watch import LOAD, REQUEST, content
from tests.english import english
from tests.server.conftest import Machine

TRAIN = "import time\nwhile True: time.sleep(0.01)"


def test_nothing_of_ours_is_english_on_a_chinese_page(lab: Lab, machine: Machine) -> None:
    user_setting(machine.root / "settings", "translation-extension/plugin", locale="zh_CN")
    lab.title, lab.notebooks, lab.running = "GPU 会话", "笔记本", "运行中"
    cells = content(LOAD, "%paddle_gpu status", "%paddle_gpu explain", REQUEST, TRAIN)
    (machine.root / "notebooks" / "a.ipynb").write_text(json.dumps(cells))
    lab.open("lab/tree/a.ipynb")
    says(lab.card(lab.notebooks, "a.ipynb"), lab.running)
    lab.page.locator(".jp-Notebook .jp-InputPrompt").first.click()
    for _ in range(5):
        lab.page.keyboard.press("Shift+Enter")
    outputs = lab.page.locator(".jp-Notebook .jp-OutputArea-output")
    screen = lab.page.get_by_role("group", name="Paddle GPU")
    says(screen, "运行中", "最近快照")
    ticket = machine.file()
    assert ticket.wait(timeout_s=40), "the GPU was not given up"
    says(lab.page.locator(".jp-Notebook"), "Evicted: 没有可保存的内容，正在等待")
    says(lab.card(lab.notebooks, "a.ipynb"), "需要 1 个 GPU", "占用")
    lab.picture("chinese-waiting")
    said = [lab.panel.inner_text(), *outputs.all_inner_texts()]
    assert [found for text in said for found in english(text)] == []
    ticket.release()
    says(lab.card(lab.notebooks, "a.ipynb"), lab.running)
    expect(lab.panel).to_be_visible(timeout=PATIENCE_MS)
