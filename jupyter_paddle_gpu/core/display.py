"""What a magic shows: HTML where there is a notebook, plain text in a terminal, from the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from unicodedata import combining, east_asian_width

from jupyter_paddle_gpu.language import translated, word

_STYLE = (
    "border-collapse:collapse;color:var(--jp-ui-font-color1, inherit);"
    "font-family:var(--jp-ui-font-family, sans-serif);font-size:var(--jp-ui-font-size1, 13px)"
)
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;white-space:pre-wrap"
_DIM = "color:var(--jp-ui-font-color2, #777)"
_WARN = "color:var(--jp-warn-color0, #b45309)"


@dataclass(frozen=True)
class Facts:
    """A title and named facts, one a line; ``warnings`` stand out below. All is shown in the user's language."""

    title: str
    rows: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()

    def __str__(self) -> str:
        rows = self._rows()
        width = max((columns(name) for name, _ in rows), default=0)
        lines = [_title(self.title), *(f"  {_fill(name, width)}  {value}" for name, value in rows)]
        return "\n".join([*lines, *(f"  ! {translated(text)}" for text in self.warnings)])

    def _rows(self) -> list[tuple[str, str]]:
        return [(word(name), translated(value)) for name, value in self.rows]

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td style="{_CELL};{_DIM}">{escape(name)}</td><td style="{_CELL}">{escape(value)}</td></tr>'
            for name, value in self._rows()
        )
        warnings = "".join(f'<div style="{_WARN}">⚠ {escape(translated(text))}</div>' for text in self.warnings)
        return _block(self.title, f'<table style="{_STYLE}">{rows}</table>{warnings}')

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of the same length; ``empty`` is said where there are no rows. All is shown in the
    user's language, but words that may be names."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    empty: str = ""

    def __str__(self) -> str:
        title = _title(self.title)
        if not self.rows:
            return f"{title}\n  {translated(self.empty)}"
        head, *rows = self._cells()
        widths = [max(columns(row[column]) for row in [head, *rows]) for column in range(len(head))]
        lines = (
            "  " + "  ".join(_fill(text, width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        )
        return "\n".join([title, *lines])

    def _cells(self) -> list[list[str]]:
        return [[word(text) for text in self.header], *([translated(text) for text in row] for row in self.rows)]

    def _repr_html_(self) -> str:
        if not self.rows:
            return _block(self.title, f'<div style="{_DIM}">{escape(translated(self.empty))}</div>')
        names, *rows = self._cells()
        head = "".join(f'<th style="{_CELL};{_DIM}">{escape(text)}</th>' for text in names)
        body = "".join(
            "<tr>" + "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in row) + "</tr>" for row in rows
        )
        table = f'<table style="{_STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        return _block(self.title, table)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: a Chinese character takes two."""
    return sum(0 if combining(character) else 1 + (east_asian_width(character) in "WF") for character in text)


def _fill(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def _title(title: str) -> str:
    return translated(word(title))


def _block(title: str, body: str) -> str:
    return f'<div style="{_STYLE}"><b style="white-space:pre-wrap">{escape(_title(title))}</b>{body}</div>'


Shown = Facts | Table
