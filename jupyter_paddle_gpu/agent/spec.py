"""The agent's configuration file."""

from __future__ import annotations

import json
from pathlib import Path

from jupyter_paddle_gpu.core.agentspec import AgentSpec
from jupyter_paddle_gpu.core.codec import from_plain
from jupyter_paddle_gpu.core.errors import PaddleGpuError, PlacementError


def read_spec(path: Path) -> AgentSpec:
    """Read an AgentSpec. Raises PlacementError that says what is wrong with the file."""
    try:
        return from_plain(AgentSpec, json.loads(path.read_bytes()))
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        reason = f"it is not JSON: {error}"
    except PaddleGpuError as error:
        reason = str(error)
    raise PlacementError(f"The agent's spec {path} cannot be used: {reason}", "Start the kernel again.")
