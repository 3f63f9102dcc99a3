"""``%paddle_gpu SUBCOMMAND``: the line magic, its help and its completion."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_magic, magics_class
from IPython.display import display

from jupyter_paddle_gpu.core.errors import PaddleGpuError, RequestError
from jupyter_paddle_gpu.kernel.parser import MAGIC, HelpShown, nearest, parser_of, split
from jupyter_paddle_gpu.language import translated

if TYPE_CHECKING:
    from jupyter_paddle_gpu.kernel.commands.command import Command


class UsageError(PaddleGpuError):
    """What a line could not do. It is shown alone, as IPython's own of that name, but also by tools that show the
    traceback of a cell and nothing else."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@magics_class
class PaddleGpuMagics(Magics):  # type: ignore[misc]  # IPython has no types
    """What the extension registers."""

    @line_magic  # type: ignore[untyped-decorator]  # IPython has no types
    def paddle_gpu(self, line: str) -> None:
        """Preemptible GPUs for this notebook: %paddle_gpu status, request, release, save, restore, … (see --help)."""
        try:
            command, args = parse(line)
            display(command.run(args, self.shell.user_ns))
        except HelpShown as help_:
            print(help_)
        except PaddleGpuError as error:
            raise UsageError(str(error)) from None
        else:
            command.after()


def register(shell: Any) -> None:
    """Give this shell the magic and its completion."""
    shell.register_magics(PaddleGpuMagics)
    shell.set_hook("complete_command", complete, str_key=MAGIC)


def unregister(shell: Any) -> None:
    """Take them away again."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(MAGIC.lstrip("%"), None)
    shell.strdispatchers["complete_command"].strs.pop(MAGIC, None)


def parse(line: str) -> tuple[Command, argparse.Namespace]:
    """Return what one line calls, with its arguments. Raises PaddleGpuError, HelpShown."""
    from jupyter_paddle_gpu.kernel.commands import COMMANDS  # the first use pays, not the loading of the extension

    words = split(line) or ["status"]
    if words[0] in ("-h", "--help", "help"):
        words = [*words[1:2], "--help"]
    if words == ["--help"]:
        raise HelpShown(overview())
    command = COMMANDS.get(words[0])
    if command is None:
        hint = nearest(words[0].lower(), [*COMMANDS, "--help"])
        raise RequestError(f"{MAGIC} has no subcommand {words[0]}.{hint}", f"There are: {', '.join(COMMANDS)}.")
    return command, parser_of(command).parse_args(words[1:])


def overview() -> str:
    """Return the help of the magic itself."""
    from jupyter_paddle_gpu.kernel.commands import COMMANDS

    lines = [f"  {command.name:10} {translated(command.help)}" for command in COMMANDS.values()]
    return "\n".join([translated(f"{MAGIC} SUBCOMMAND [--help]"), "", *lines])


def complete(shell: Any, event: Any) -> list[str]:
    """Return the words that may stand where the cursor is: IPython's hook for custom completion."""
    from jupyter_paddle_gpu.kernel.completion import choices, keepable  # the first use pays

    before = event.text_until_cursor.split(MAGIC.lstrip("%"), 1)[-1]
    return choices(before, event.symbol, keepable(shell))
