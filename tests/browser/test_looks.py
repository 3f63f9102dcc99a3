"""The same sidebar in other surroundings: dark and Chinese, Notebook 7 with high contrast, many GPUs, a lost one."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import user_setting
from tests.browser.lab import Lab, says
from tests.server.conftest import Machine
from tests.telemetry import driver

CONTRAST = Path(__file__).with_name("contrast.js")
LEAST_CONTRAST = 4.5  # that of WCAG's level AA


def readable(lab: Lab) -> None:
    """Every text of the sidebar stands out against what is behind it."""
    faint = [found for found in lab.panel.evaluate(CONTRAST.read_text()) if found["ratio"] < LEAST_CONTRAST]
    assert faint == []


def test_dark_and_chinese(lab: Lab, machine: Machine) -> None:
    settings = machine.root / "settings"
    user_setting(settings, "apputils-extension/themes", theme="JupyterLab Dark")
    user_setting(settings, "translation-extension/plugin", locale="zh_CN")
    lab.title, lab.notebooks, lab.running = "GPU 会话", "笔记本", "运行中"
    lab.open_notebook()
    says(lab.panel, "设备", "利用率", "1 个 GPU 中有 0 个空闲", "立即保存")
    lab.picture("dark-chinese")
    readable(lab)


def test_notebook_7_with_high_contrast(lab: Lab, machine: Machine) -> None:
    user_setting(machine.root / "settings", "apputils-extension/themes", theme="JupyterLab Dark High Contrast")
    lab.open_notebook(app="notebooks")
    says(lab.panel, "Devices", "Busy")
    lab.picture("notebook-7")
    readable(lab)


def test_eight_gpus_of_which_one_is_lost_and_comes_back(lab: Lab, machine: Machine, gpus: driver.Machine) -> None:
    (machine.book / "machine.json").write_text(json.dumps({"gpus": [str(index) for index in range(8)]}))
    gpus.is_now("gpus 8")
    machine.add_kernelspec("large", {"gpus": 8})
    lab.open_notebook(kernel="large")
    for index in range(8):
        says(lab.card("Devices", f"GPU {index}"), "50 % busy, 3 % full")
    lab.picture("eight-gpus")
    readable(lab)
    gpus.is_now("gpus 8", "answer * 15")
    says(lab.card("Devices", "GPU 3"), "These values are old", "lost")
    lab.picture("lost-gpu")
    gpus.is_now("gpus 8")
    expect(lab.card("Devices", "GPU 3")).not_to_contain_text("These values are old", timeout=60_000)
