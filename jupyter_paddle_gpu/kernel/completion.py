"""Tab completion of ``%paddle_gpu``: the words that may stand where the cursor is."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.kernel.commands import COMMANDS
from jupyter_paddle_gpu.kernel.commands.command import Command
from jupyter_paddle_gpu.kernel.parser import parser_of


def choices(before: str, token: str, variables: Mapping[str, object]) -> list[str]:
    """Return what completes ``before``, the line from the magic's name up to the cursor.

    ``token`` is the part of it that a completion replaces (IPython begins one behind ``=``). Empty where a choice
    cannot be looked up: a command that is run says why, not each press of Tab.
    """
    words = before.split()
    typed = words.pop() if words and not before[-1].isspace() else ""
    try:
        found = _choices(words, typed, variables)
    except PaddleGpuError:
        return []
    option, equals, _ = typed.partition("=")
    prefix = option + equals if option.startswith("--") and not token.startswith("-") else ""
    return [choice.removeprefix(prefix) for choice in found if choice.startswith(typed)]


def keepable(shell: Any) -> dict[str, object]:
    """Return the user's variables that may be worth keeping: not IPython's own, no modules, functions or classes."""
    hidden = shell.user_ns_hidden
    return {
        name: value
        for name, value in shell.user_ns.items()
        if not name.startswith("_") and name not in hidden and not callable(value) and not isinstance(value, ModuleType)
    }


def _choices(words: list[str], typed: str, variables: Mapping[str, object]) -> list[str]:
    if not words:
        return [*COMMANDS, "--help"]
    if (command := COMMANDS.get(words[0])) is None:
        return []
    given = words[1:]
    option, equals, _ = typed.partition("=")
    if equals and option in command.values:
        return [f"{option}={value}" for value in command.values[option]()]
    if given and given[-1] in command.values:
        return command.values[given[-1]]()
    if typed.startswith("-"):
        return _options(command, given)
    return [word for word in command.complete(given, variables) if word not in given] or _options(command, given)


def _options(command: Command, given: list[str]) -> list[str]:
    return [option for option in parser_of(command).options() if option not in given]
