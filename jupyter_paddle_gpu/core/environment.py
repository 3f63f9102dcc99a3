"""The variables that an agent gives to its kernel."""

from __future__ import annotations

ENV_SESSION = "PADDLE_GPU_SESSION"  # the session's id
ENV_AWAITED = "PADDLE_GPU_AWAITED"  # set where clients have waited for the kernel: their sockets are about to connect
ENV_AGENT = "PADDLE_GPU_AGENT"  # path of the agent's socket
