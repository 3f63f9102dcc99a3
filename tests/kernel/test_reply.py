"""A request has one answer: what the kernel says after the refusal is not let out, what comes later is refused too."""

from __future__ import annotations

from pathlib import Path

from tests.kernel.kernels import notebook

ATTACH = """
from jupyter_paddle_gpu.kernel.reply import Refusal, Switchboard
board = Switchboard.attach(get_ipython().kernel, lambda cell: None)
"""


def test_nothing_is_answered_twice(place: Path) -> None:
    with notebook(place, module="ipykernel_launcher") as opened:
        opened.good(ATTACH)
        refused = opened.begin("print(board.refuse_all(Refusal('Evicted', 'told'), 10.0), board.running())")
        opened.read(lambda: refused.idle == 2)  # the cell went on to its end, with a reply of its own
        later = opened.begin("print('never')")
        opened.end(refused, later)
        assert refused.text == "True False\n"
        assert [reply["evalue"] for cell in (refused, later) for reply in cell.replies] == ["told", "not run: told"]
        assert later.text == ""
