"""What Paddle's own allocator says of its memory; two reads of a counter, no synchronisation with the device."""

from __future__ import annotations

import paddle


def memory() -> tuple[str, int, int, int]:
    """Return the device that Paddle computes on, and there: bytes of live tensors, bytes held for them, most so far."""
    core = paddle.framework.core
    device = str(paddle.device.get_device())
    kind, _, index = device.partition(":")
    if kind == "cpu":
        current, peak = core.host_memory_stat_current_value, core.host_memory_stat_peak_value
    else:
        current, peak = core.device_memory_stat_current_value, core.device_memory_stat_peak_value
    number = int(index or 0)
    return device, current("Allocated", number), current("Reserved", number), peak("Allocated", number)
