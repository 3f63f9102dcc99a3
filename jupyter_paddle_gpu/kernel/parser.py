"""The arguments of ``%paddle_gpu``: argparse that never exits, and knows the nearest word."""

from __future__ import annotations

import argparse
import difflib
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.language import translated, word

if TYPE_CHECKING:
    from jupyter_paddle_gpu.kernel.commands.command import Command

MAGIC = "%paddle_gpu"


class HelpShown(Exception):
    """``--help`` was asked for; the text is to be printed."""


class MagicParser(argparse.ArgumentParser):
    """Raises RequestError where argparse would end the program, and HelpShown where it would print."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(_with_nearest(self, message), f"{self.prog} --help shows what there is.")

    def print_help(self, file: object = None) -> None:
        raise HelpShown(self.format_help().replace("usage: ", word("usage: "), 1))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise RequestError(message or f"{self.prog} ended with {status}")

    def translate(self) -> None:
        """Say in the user's language what argparse and the arguments say of themselves."""
        for group in self._action_groups:
            group.title = word(group.title or "")
        for action in self._actions:
            action.help = translated(action.help or "")

    def options(self) -> list[str]:
        """Return all spellings of all options."""
        return [option for action in self._actions for option in action.option_strings]


def parser_of(command: Command) -> MagicParser:
    """Return the parser of a subcommand's arguments."""
    parser = MagicParser(prog=f"{MAGIC} {command.name}", description=translated(command.help))
    command.add_arguments(parser)
    parser.translate()
    return parser


def split(line: str) -> list[str]:
    """Split a magic's line like a shell does. Raises RequestError for a quote that does not close."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise RequestError(f"The line does not read: {error}", "Close the quote.") from None


def nearest(word: str, words: Sequence[str]) -> str:
    """Return `` Did you mean …?`` for the word that was probably meant; empty where none is near."""
    near = difflib.get_close_matches(word, words, 1)
    return f" Did you mean {near[0]}?" if near else ""


def _with_nearest(parser: MagicParser, message: str) -> str:
    """Say in our words what argparse says of unknown arguments."""
    prefix = "unrecognized arguments: "
    if not message.startswith(prefix):
        return f"{parser.prog}: {message}"
    word = message.removeprefix(prefix).split()[0]
    kind = "option" if word.startswith("-") else "argument"
    return f"{parser.prog} has no {kind} {word}.{nearest(word.split('=')[0], parser.options())}"
