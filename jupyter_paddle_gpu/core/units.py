"""Sizes and durations as people write them, and back."""

from __future__ import annotations

import math
import re

from jupyter_paddle_gpu.core.errors import RequestError

_MEMORY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SIZE_FACTORS = {
    "": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip  # Kubernetes quantities: decimal and binary suffixes
_DURATION_FACTORS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def parse_size(text: str) -> int:
    """Return the bytes that a Kubernetes quantity such as ``16Gi`` or ``500M`` means. Raises RequestError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]i?)?B?\s*", text)
    factor = _SIZE_FACTORS.get(match[2] or "") if match else None
    if match is None or factor is None or (nbytes := float(match[1]) * factor) == math.inf:
        raise RequestError(f"{text!r} is not a size", "Write a number with a unit, such as 16Gi or 500M.")
    return int(nbytes)


def parse_duration(text: str) -> float:
    """Return the seconds that ``90``, ``60s``, ``10m`` or ``1h30m`` mean. Raises RequestError."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text.replace(" ", ""))
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        raise RequestError(f"{text!r} is not a duration", "Write a number with a unit, such as 60s, 10m or 1h30m.")
    return sum(float(number) * _DURATION_FACTORS[unit] for number, unit in parts)


def format_size(nbytes: int) -> str:
    """Return a size to read: ``2.1 GB``."""
    value = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def format_memory(nbytes: int) -> str:
    """Return an amount of memory to read, in powers of two, as drivers count it: ``7.4 GiB``, ``80 GiB``."""
    value, unit = float(nbytes), 0
    while value >= 1000 and unit < len(_MEMORY_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.{int(unit > 0 and value < 9.95)}f} {_MEMORY_UNITS[unit]}"


def format_quantity(nbytes: int) -> str:
    """Return a size as people ask for it, in Kubernetes' quantities: ``16Gi``; to read where it is not a round one."""
    for unit in ("Ti", "Gi", "Mi"):
        if nbytes and nbytes % _SIZE_FACTORS[unit] == 0:
            return f"{nbytes // _SIZE_FACTORS[unit]}{unit}"
    return format_size(nbytes)


def format_duration(seconds: float) -> str:
    """Return a duration to read: ``12 ms``, ``0.4 s``, ``42 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if 0.0005 <= seconds < 0.0995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
