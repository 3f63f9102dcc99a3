"""What we say in the user's language, and that nothing we say is missing there."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

import jupyter_paddle_gpu
from jupyter_paddle_gpu.core.errors import RequestError, SnapshotMismatch
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER
from jupyter_paddle_gpu.language import Catalogue, language, spoken, translated, word

ROOT = Path(jupyter_paddle_gpu.__file__).parent
SENTENCES: dict[str, str] = json.loads((ROOT / "locale" / "zh_CN" / "sentences.json").read_text("utf-8"))
CHINESE = Catalogue(SENTENCES)
_WORDS = re.compile(r"[A-Za-z]{2,}")
_PATTERN = re.compile(r"\\[a-zA-Z0-9(]|\(\?|\)\?|\.[*+]|\[\^")  # a regular expression, not a sentence
PLACE = re.compile(r"\{([#=]?)(\d)\}")
# Nobody reads these in a page: the wire's own faults, and what an administrator or a developer of clients reads.
NOT_SHOWN = (
    "__main__", "admin/app", "admin/demo/", "admin/environment", "admin/manifests", "admin/top/", "agent/__main__",
    "agent/lastword", "agent/peers", "agent/spec", "core/codec", "core/display", "core/ranks", "core/wire",
    "kernel/widget/", "language", "placement/kubernetes/manifests", "placement/local/claimfile", "server/app",
    "server/metrics", "server/provisioner", "server/stream",
)  # fmt: skip
NO_SENTENCE = {
    "has no attribute", "%(asctime)s %(message)s", "unrecognized arguments", "A grant of another placement",
    "unbound immediate PersistentVolumeClaims", "Too many pods",
    "jupyter-paddle-gpu snapshot", "paddle-gpu: [",
    '{"gpus": ["0", "1"], "tiers": {"urgent": {"priority": 1000}, "notebook": {"priority": -10}}}',
}  # fmt: skip  # for Python, for programs
HELP = {"add_argument", "add_parser", "add_book_option"}  # of the command line, which argparse shows in English
NO_SENTENCES = {"debug", "info", "warning", "error", "exception", "log", "compile", "RuntimeError", "Thread"}


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PADDLE_GPU_LANGUAGE", "zh_CN")


def said(node: ast.AST, silent: Set[str]) -> Iterator[str]:
    """Yield what of a module's texts people may read: the fixed parts of its sentences, but those that are given to a
    function of a ``silent`` name."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in silent:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from said(child, silent)


def written() -> Iterator[tuple[str, str]]:
    """Yield each module with each of its fixed parts that has two words or more."""
    for path in ROOT.rglob("*.py"):
        module = path.relative_to(ROOT).as_posix()
        if module.startswith(NOT_SHOWN):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        for texts in said(tree, NO_SENTENCES | (HELP if module.startswith("admin/") else set())):
            for line in texts.strip().split("\n"):
                text = line.strip(" .,;:(")
                if (
                    len(_WORDS.findall(text)) > 1
                    and " " in text
                    and text not in NO_SENTENCE
                    and not _PATTERN.search(text)
                ):
                    yield module, text


def test_no_sentence_lacks_a_translation() -> None:
    known = "\n".join(SENTENCES)
    lacking = {(module, text) for module, text in written() if _numbered(text) not in known and " | " not in text}
    assert lacking == set()


def _numbered(text: str) -> str:
    """Return a text that str.format fills by numbers, from 0 on, as the catalogue has it: from 1 on."""
    return re.sub(r"\{(\d)\}", lambda place: f"{{{int(place[1]) + 1}}}", text)


def test_no_value_of_ours_lacks_a_translation() -> None:
    words = {member.value for kind in (Cause, State, SaveOutcome) for member in kind}
    assert words | {tier.description for tier in DEFAULT_LADDER.tiers} <= set(SENTENCES)


def test_a_translation_has_no_value_that_its_sentence_has_not() -> None:
    wrong = [
        english
        for english, text in SENTENCES.items()
        if not {number for _, number in PLACE.findall(text)} <= {number for _, number in PLACE.findall(english)}
    ]
    assert wrong == []


def test_each_sentence_is_found_by_what_it_says() -> None:
    """With values that no other sentence is made of."""
    values = {"": "Xyzzy", "#": "4.2 s", "=": "manual"}
    for english, text in SENTENCES.items():
        if " " in english.strip():
            instance = PLACE.sub(lambda place: values[place[1]], english)
            shape = ".*".join(map(re.escape, PLACE.sub("\0", text.removesuffix("。")).split("\0")))
            found = CHINESE.translated(instance).removesuffix("。")
            assert re.fullmatch(shape, found, re.DOTALL), f"{instance} → {found}"


@pytest.mark.parametrize(
    ("english", "text"),
    [
        ("step 1200 saved, waiting for a GPU, position 2", "第 1200 步已保存，正在等待 GPU，排第 2 位"),
        (
            "Needs 1 GPU, 0 of 1 free; held by a.ipynb (notebook, giving it up); behind b (batch).",
            "需要 1 个 GPU，1 个中有 0 个空闲；由 a.ipynb (notebook，正在让出) 占用；排在 b (batch) 之后。",
        ),
        ("held by a (x, giving it up), b (y), c (z, giving it up)", "由 a (x，正在让出), b (y), c (z，正在让出) 占用"),
        ("There is no variable hsitory. Did you mean history?", "没有变量 hsitory。您是不是想用 history？"),
        (
            "'x' is not a size. Write a number with a unit, such as 16Gi or 500M.",
            "'x' 不是大小。请写出带单位的数，如 16Gi 或 500M。",
        ),
        (
            "no room on any of 5 nodes: 2 × too little nvidia.com/gpu free, 3 × closed for new Pods",
            "5 个节点都没有空间：2 个缺少 nvidia.com/gpu，3 个不接受新的 Pod",
        ),
        ("This kernel is running, tier notebook (-10)", "此内核运行中，级别 notebook (-10)"),
        (
            "Gives up its place (preempted by urgent job), 30 s left for the save",
            "正在让出（被抢占，让给 urgent job），还有 30 s 可用于保存",
        ),
        ("2.1 GB, 4.0 s of 3 min 20 s", "2.1 GB，需 4.0 s，限 3 min 20 s"),
        ("history, best", "history, best"),
        ("state", "state"),
        ("What nobody has translated. Install it.", "What nobody has translated. 请安装。"),
        ("", ""),
    ],
)
def test_sentences_as_they_are_said(chinese: None, english: str, text: str) -> None:
    assert translated(english) == text


def test_what_a_page_reads_is_said_whole(chinese: None) -> None:
    reading = {
        "fault": "this device does not tell it",
        "gpus": [{"id": "0", "unknown": {"xids": "power limit"}}],
        "n": 1,
    }
    assert spoken(reading) == {"fault": "此设备不提供", "gpus": [{"id": "0", "unknown": {"xids": "功率上限"}}], "n": 1}


@pytest.mark.parametrize(
    "label", [" , of  free", "; ", ". ", ": argument : invalid value: ", "1 s ago, ", "\n", "held by "]
)
def test_what_others_have_named_so_that_it_is_hard_to_read_is_read_all_the_same(chinese: None, label: str) -> None:
    """Whoever names a job is shown in the sentences of others, who wait for it."""
    name = label * (7000 // len(label))
    assert translated(f"Needs 1 GPU, 0 of 1 free; held by {name}x.").startswith("需要 1 个 GPU")
    assert translated(name * 3) == name * 3


def test_an_error_is_one_sentence_after_another(chinese: None) -> None:
    assert str(RequestError("There is no tier vip", "Choose one of: a, b.")) == "没有级别 vip。可选：a, b。"
    mismatch = SnapshotMismatch(
        "The snapshot belongs to another model or optimizer; nothing was loaded", ("a: only here",)
    )
    assert str(mismatch).endswith("；什么也没有载入\n  a：仅在这里")
    assert RequestError("There is no tier vip").fault == "There is no tier vip", "what programs read"


def test_the_language_is_that_of_jupyterlab_then_of_the_server_then_of_the_process(tmp_path: Path) -> None:
    settings = tmp_path / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    lab = {"JUPYTERLAB_SETTINGS_DIR": str(tmp_path)}
    assert language({**lab, "LANG": "zh_CN.UTF-8"}) == "zh"
    assert language({**lab, "LANG": "zh_CN.UTF-8", "LC_ALL": "C"}) == "en"
    assert language({**lab, "JUPYTER_PADDLE_GPU_LANGUAGE": "zh", "LANG": "en_US"}) == "zh"
    settings.write_text('{\n    // "locale": "en"\n    "locale": "zh_CN"\n}')
    assert language({**lab, "LANG": "en_US"}) == "zh"
    settings.write_text('{"locale": "default"}')
    assert language({**lab, "LANG": "en_US"}) == "en"


@pytest.mark.parametrize("odd", ["xx", "zz_ZZ.UTF-8", "C", "", "\udcff", "中文"])
def test_a_language_that_there_is_not_is_english(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_bytes(b'\xff{"locale": ' + odd.encode("utf-8", "replace") + b'"')
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path))
    monkeypatch.setenv("LANG", odd)
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "JUPYTER_PADDLE_GPU_LANGUAGE"):
        monkeypatch.delenv(name, raising=False)
    assert (translated("Install it."), word("running")) == ("Install it.", "running")
