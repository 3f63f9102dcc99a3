"""What an agent is started with, and where a session's files lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jupyter_paddle_gpu.core.device import Device
from jupyter_paddle_gpu.core.environment import ENV_AGENT as ENV_AGENT
from jupyter_paddle_gpu.core.environment import ENV_SESSION as ENV_SESSION
from jupyter_paddle_gpu.core.request import GpuRequest


@dataclass(frozen=True)
class Listen:
    """A TCP ``port`` on all addresses, for a server on another machine: TLS by the key in the file ``pem``, which
    both ends hold."""

    port: int
    pem: Path


@dataclass(frozen=True)
class AgentSpec:
    """The agent's whole configuration, read from a file that only its owner can read.

    ``socket`` is the agent's Unix socket; ``listen`` says where else it may be reached (None: nowhere);
    ``kernel_log`` takes the kernel's stdout and stderr; ``lease_s`` is how long the agent keeps a kernel whose server
    is gone; ``claim`` is this session's claim in the machine's book of leases (None where something else schedules),
    and ``claim_fd`` the inherited descriptor whose lock keeps it.
    The kernel's command comes by message: it may change, the agent stays.
    """

    session: str
    request: GpuRequest
    devices: tuple[Device, ...]
    socket: Path
    kernel_log: Path
    lease_s: float = 300.0
    book: Path | None = None
    claim: str | None = None
    claim_fd: int | None = None
    listen: Listen | None = None


@dataclass(frozen=True)
class SessionFiles:
    """Owns every file name of a session: ``data`` lasts (record, log), ``runtime`` goes with the login (socket)."""

    data: Path
    runtime: Path
    session: str

    @property
    def directory(self) -> Path:
        return self.data / "sessions" / self.session

    @property
    def record(self) -> Path:
        """The session as its server last knew it: for the server that comes after a crash."""
        return self.directory / "session.json"

    @property
    def owner_lock(self) -> Path:
        """Locked by the server that looks after this session: nobody else adopts it."""
        return self.directory / "owner.lock"

    @property
    def agent_spec(self) -> Path:
        return self.directory / "agent.json"

    @property
    def agent_key(self) -> Path:
        """The key by which an agent on another machine is reached."""
        return self.directory / "agent.pem"

    @property
    def agent_log(self) -> Path:
        return self.directory / "agent.log"

    @property
    def kernel_log(self) -> Path:
        return self.directory / "kernel.log"

    @property
    def socket(self) -> Path:
        """Short on purpose: a Unix socket's path has at most 107 bytes."""
        return self.runtime / f"{self.session[:8]}.sock"
