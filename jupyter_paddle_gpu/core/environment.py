"""The variables that an agent gives to its kernel, and `run` to its job."""

from __future__ import annotations

ENV_SESSION = "PADDLE_GPU_SESSION"  # the session's id
ENV_AWAITED = "PADDLE_GPU_AWAITED"  # set where clients have waited for the kernel: their sockets are about to connect
ENV_AGENT = "PADDLE_GPU_AGENT"  # path of the agent's socket
ENV_JOB = "PADDLE_GPU_JOB"  # set in a job of `run`, which sends its signals to all of its processes: no shell keeps one
