"""What a user asks for, validated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.core.units import parse_duration, parse_size

MIN_GRACE_S = 1.0
MAX_GRACE_S = 3600.0


@dataclass(frozen=True)
class GpuRequest:
    """A session's wish: ``gpus`` devices (0: none, the kernel starts at once), host ``memory_bytes`` (None: no limit),
    ``tier`` by name, ``grace_s`` seconds between an eviction notice and the end."""

    gpus: int = 1
    memory_bytes: int | None = None
    tier: str = "notebook"
    grace_s: float = 60.0

    def __post_init__(self) -> None:
        if isinstance(self.gpus, bool) or not isinstance(self.gpus, int) or self.gpus < 0:
            raise RequestError(f"{self.gpus!r} is not a number of GPUs", "Ask for 0, 1, 2, …")
        if not MIN_GRACE_S <= self.grace_s <= MAX_GRACE_S:
            raise RequestError(
                f"A grace of {self.grace_s:g} s is outside {MIN_GRACE_S:g} s to {MAX_GRACE_S:g} s",
                "Ask for the time that a save needs; `%paddle_gpu status` shows it.",
            )
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise RequestError(f"{self.memory_bytes} bytes is no memory to run in", "Ask for a size such as 16Gi.")

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> GpuRequest:
        """Read ``{"gpus": 1, "memory": "16Gi", "tier": "notebook", "grace": "60s"}`` as a kernelspec gives it.

        Missing fields take the defaults. Raises RequestError for an unknown field or a value that is not understood.
        """
        unknown = sorted(set(config) - {"gpus", "memory", "tier", "grace"})
        if unknown:
            raise RequestError(
                f"A request has no field {', '.join(unknown)}", "The fields are gpus, memory, tier and grace."
            )
        return cls().changed(**config)

    def changed(self, **config: object) -> GpuRequest:
        """Return this request with the given fields of ``from_config`` replaced; a field that is None stays."""
        fields: dict[str, object] = {}
        if (gpus := config.get("gpus")) is not None:
            fields["gpus"] = gpus
        if (memory := config.get("memory")) is not None:
            fields["memory_bytes"] = memory if isinstance(memory, int) else parse_size(str(memory))
        if (tier := config.get("tier")) is not None:
            fields["tier"] = str(tier)
        if (grace := config.get("grace")) is not None:
            fields["grace_s"] = parse_duration(str(grace))
        return dataclasses.replace(self, **fields)  # type: ignore[arg-type]  # __post_init__ checks each value
