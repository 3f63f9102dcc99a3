"""What a user asks for, validated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_paddle_gpu.core.errors import RequestError
from jupyter_paddle_gpu.core.units import format_duration, parse_duration, parse_size

MIN_GRACE_S = 1.0
MAX_GRACE_S = 3600.0
MIN_EVERY_S = 10.0
MAX_EVERY_S = 24 * 3600.0
MIN_MEMORY_BYTES = 2**24  # less holds no Python: who writes 16 means 16Gi
MAX_MEMORY_BYTES = 1 << 60

FIELDS = ("gpus", "memory", "tier", "grace", "every")  # as people write them
_EVERY = {"auto": None, "off": 0.0}


@dataclass(frozen=True)
class GpuRequest:
    """A session's wish: ``gpus`` devices (0: none, the kernel starts at once), host ``memory_bytes`` (None: no limit),
    ``tier`` by name, ``grace_s`` seconds between an eviction notice and the end, ``every_s`` seconds between the
    snapshots that a training makes by itself (None: as its saves take; 0: none)."""

    gpus: int = 1
    memory_bytes: int | None = None
    tier: str = "notebook"
    grace_s: float = 60.0
    every_s: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.gpus, bool) or not isinstance(self.gpus, int) or self.gpus < 0:
            raise RequestError(f"{self.gpus!r} is not a number of GPUs", "Ask for 0, 1, 2, …")
        if not MIN_GRACE_S <= self.grace_s <= MAX_GRACE_S:
            raise RequestError(
                f"A grace of {format_duration(self.grace_s)} is outside {MIN_GRACE_S:g} s to {MAX_GRACE_S / 3600:g} h",
                "Ask for the time that a save needs; `%paddle_gpu status` shows it.",
            )
        if self.every_s and not MIN_EVERY_S <= self.every_s <= MAX_EVERY_S:
            raise RequestError(
                f"A snapshot every {self.every_s:g} s is outside {MIN_EVERY_S:g} s to {MAX_EVERY_S / 3600:g} h",
                "Write auto, off, or a time such as 10m.",
            )
        if self.memory_bytes is not None and not MIN_MEMORY_BYTES <= self.memory_bytes <= MAX_MEMORY_BYTES:
            raise RequestError(f"{self.memory_bytes} bytes is no memory to run in", "Ask for a size such as 16Gi.")

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> GpuRequest:
        """Read ``{"gpus": 1, "memory": "16Gi", "tier": "notebook", "grace": "60s", "every": "10m"}``.

        ``every`` may be auto or off.

        Missing fields take the defaults. Raises RequestError for an unknown field or a value that is not understood.
        """
        check_fields(config)
        return cls().changed(**config)

    def changed(self, **config: object) -> GpuRequest:
        """Return this request with the given fields of ``from_config`` replaced; a field that is None stays."""
        fields: dict[str, object] = {}
        if (gpus := config.get("gpus")) is not None:
            fields["gpus"] = gpus
        if (memory := config.get("memory")) is not None:
            fields["memory_bytes"] = memory if type(memory) is int else parse_size(str(memory))  # True is no size
        if (tier := config.get("tier")) is not None:
            fields["tier"] = str(tier)
        if (grace := config.get("grace")) is not None:
            fields["grace_s"] = parse_duration(str(grace))
        if (every := config.get("every")) is not None:
            word = str(every)
            fields["every_s"] = _EVERY[word] if word in _EVERY else parse_duration(word)
        return dataclasses.replace(self, **fields)  # type: ignore[arg-type]  # __post_init__ checks each value


def check_fields(config: Mapping[str, object]) -> None:
    """Raise RequestError where a field has a name that a request does not know."""
    if unknown := sorted(set(config) - set(FIELDS)):
        names = ", ".join(map(repr, unknown))
        raise RequestError(f"A request has no field {names}", f"The fields are {', '.join(FIELDS)}.")
