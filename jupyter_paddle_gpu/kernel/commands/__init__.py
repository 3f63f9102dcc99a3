"""The subcommands of ``%paddle_gpu``, each a function from its parsed arguments to what is shown."""

from __future__ import annotations

from jupyter_paddle_gpu.kernel.commands import gpu, training, watch
from jupyter_paddle_gpu.kernel.commands.command import Command

COMMANDS: dict[str, Command] = {
    command.name: command for command in (*gpu.COMMANDS, *watch.COMMANDS, *training.COMMANDS)
}
