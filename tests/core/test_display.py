"""What the magics show: safe in a page, straight in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_paddle_gpu.core.display import Facts, Table, columns
from jupyter_paddle_gpu.kernel.commands.words import too_short
from jupyter_paddle_gpu.kernel.status import GuardStatus


@given(st.text(), st.text(), st.text())
def test_what_is_shown_is_escaped(title: str, name: str, value: str) -> None:
    hostile = "<script>alert(1)</script>"
    for shown in (
        Facts(title + hostile, [(name, value + hostile)], [hostile]),
        Table(title, ("a", "b"), [(name, hostile)], hostile),
    ):
        assert "<script>" not in shown._repr_html_()
        assert "&lt;script&gt;" in shown._repr_html_()
        assert hostile in str(shown)


@given(st.lists(st.text("a训é\u0301 ", max_size=6), min_size=1))
def test_columns_stand_one_below_the_other_in_a_terminal(names: list[str]) -> None:
    lines = str(Table("Snapshots", ("name", "end"), [(name, "|") for name in names])).splitlines()[2:]
    assert {columns(line) for line in lines} == {2 + max(columns(name) for name in [*names, "name"]) + 3}


def test_a_chinese_name_takes_two_columns_a_character() -> None:
    assert (columns("训练 1.ipynb"), columns("e\u0301"), columns("")) == (12, 1, 0)
    assert str(Facts("t", [("训练", "a"), ("name", "b")])) == "t\n  训练  a\n  name  b"


@pytest.mark.parametrize(
    ("save_s", "grace_s", "said"),
    [(None, 5, ""), (4, 5, ""), (10, 5, "--grace 15s would do"), (3000, 5, "--grace 3600s"), (3601, 5, "keep less")],
)
def test_a_grace_that_would_do_is_named(save_s: float | None, grace_s: float, said: str) -> None:
    guard = GuardStatus(Path(), True, None, False, True, True, (), 10**9, save_s, save_s, grace_s, None, "", None, None)
    warnings = too_short(guard, grace_s)
    assert bool(warnings) == bool(said)
    assert said in "".join(warnings)


def test_an_empty_table_says_so() -> None:
    assert str(Table("Snapshots", ("a",), [], "None yet.")) == "Snapshots\n  None yet."
    assert "None yet." in Table("Snapshots", ("a",), [], "None yet.")._repr_html_()
