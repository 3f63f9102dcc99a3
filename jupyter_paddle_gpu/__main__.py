"""`python3 -m jupyter_paddle_gpu`: the command `jupyter paddle-gpu`; in a fresh clone it sets itself up first."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

from jupyter_paddle_gpu.admin import environment


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    if (root / "pyproject.toml").exists() and not _is_installed():
        try:
            python = environment.ensure(root, root / ".venv")
        except environment.SetUpError as error:
            print(error, file=sys.stderr)
            return 2
        os.execv(python, [str(python), "-m", "jupyter_paddle_gpu", *sys.argv[1:]])  # noqa: S606  # no shell is wanted
    from jupyter_paddle_gpu.admin import app

    return app.main()


def _is_installed() -> bool:
    try:
        importlib.metadata.distribution("jupyter-paddle-gpu")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
