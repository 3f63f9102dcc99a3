"""A scene as tables for a terminal, or as plain text. What is not known is a dash; why, stands below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jupyter_paddle_gpu.admin.ps import Row
from jupyter_paddle_gpu.admin.top.scene import Scene
from jupyter_paddle_gpu.admin.top.servers import Kernel
from jupyter_paddle_gpu.core.device import DeviceKind
from jupyter_paddle_gpu.core.telemetry import GpuSample, HostSample
from jupyter_paddle_gpu.core.units import format_duration, format_memory, format_size

UNKNOWN = "–"
SILENT_S = 5.0  # a kernel that has said nothing for as long sits in C code, or stands still
_COLOURS = {"running": "green", "evicting": "bold yellow", "waiting": "yellow", "failed": "bold red"}


def draw(scene: Scene) -> RenderableType:
    """Return the whole picture."""
    parts: list[RenderableType] = [_headline(scene), Text(), _devices(scene)]
    if scene.kernels:
        parts += [Text(), _kernels(scene)]
    if waiting := [row for row in scene.claims if not row.devices]:
        parts += [Text(), _queue(waiting, scene.at_s)]
    parts += [Text(note, style="dim") for note in _notes(scene)]
    return Group(*parts)


def _headline(scene: Scene) -> Text:
    held = sum(len(row.devices) for row in scene.claims)
    noun = "CPU slot" if scene.devices and scene.devices[0].kind is DeviceKind.CPU else "GPU"
    free = f"{len(scene.devices) - held} of {len(scene.devices)} {noun}{'' if len(scene.devices) == 1 else 's'} free"
    return Text(f"{free}   {_host(scene.host)}", style="bold")


def _host(host: HostSample) -> str:
    cores = UNKNOWN if host.cpu_limit_cores is None else f"{host.cpu_limit_cores:g}"
    cpu = UNKNOWN if host.cpu_percent is None else f"{host.cpu_percent / 100:.1f}"
    disk = _of(host.disk_free_bytes, host.disk_total_bytes, format_size)
    memory = _of(host.memory_used_bytes, host.memory_limit_bytes)
    return f"CPU {cpu} of {cores} cores   memory {memory}   free for snapshots {disk}"


def _of(used: int | None, total: int | None, text: Callable[[int], str] = format_memory) -> str:
    return f"{UNKNOWN if used is None else text(used)} of {UNKNOWN if total is None else text(total)}"


def _number(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:.0f} {unit}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column.strip(), no_wrap=column.endswith(" "), overflow="ellipsis")
    return table


def _devices(scene: Scene) -> Table:
    table = _table("DEVICE ", "USE ", "MEMORY ", "TEMP ", "POWER ", "STATE ", "TIER ", "FOR ", "WHAT")
    holders = {device: row for row in scene.claims for device in row.devices}
    for index, gpu in enumerate(scene.gpus):
        row = holders.get(gpu.id) or holders.get(str(index))
        table.add_row(*_gpu(index, gpu), *_holder(row, scene.at_s), style="dim" if gpu.stale else "")
    shown = {gpu.id for gpu in scene.gpus} | {str(index) for index in range(len(scene.gpus))}
    for device in scene.devices:
        if device.id not in shown:
            table.add_row(device.id, *[UNKNOWN] * 4, *_holder(holders.get(device.id), scene.at_s))
    return table


def _gpu(index: int, gpu: GpuSample) -> Iterator[str]:
    yield f"{index} {gpu.name or gpu.id}"
    yield _number(gpu.utilization_percent, "%")
    yield _of(gpu.memory_used_bytes, gpu.memory_total_bytes)
    yield _number(gpu.temperature_c, "°C") + (" !" if gpu.throttled else "")
    yield _number(gpu.power_w, "W")


def _holder(row: Row | None, at_s: float) -> tuple[str, ...]:
    if row is None:
        return "free", "", "", ""
    what = f"{row.label or f'pid {row.pid}'} ({row.owner})" + (f" {row.why}" if row.why else "")
    return row.state, row.tier, format_duration(max(0.0, at_s - row.since_s)), what


def _kernels(scene: Scene) -> Table:
    table = _table(
        "KERNEL ", "STATE ", "DEVICE ", "STEP ", "STEPS/S ", "TENSORS ", "LAST SNAPSHOT ", "A SAVE ", "DETAIL"
    )
    for kernel in scene.kernels:
        table.add_row(*_kernel(kernel, scene.at_s))
    return table


def _kernel(kernel: Kernel, at_s: float) -> Iterator[RenderableType]:
    view, said = kernel.view, kernel.said
    silent = said is not None and at_s - said.taken_s > SILENT_S and view["state"] == "running"
    yield str(view["label"])
    yield Text(view["state"] + (", mute" if silent else ""), style=_COLOURS.get(view["state"], ""))
    yield ", ".join(view["devices"]) or UNKNOWN
    yield UNKNOWN if said is None or said.step is None else str(said.step)
    yield UNKNOWN if said is None or said.steps_per_s is None else f"{said.steps_per_s:.1f}"
    yield UNKNOWN if said is None or said.allocated_bytes is None else format_memory(said.allocated_bytes)
    yield _snapshot(view.get("saved"), at_s)
    grace = format_duration(view["request"]["grace_s"])
    save_s = None if said is None else said.save_s
    yield f"{UNKNOWN if save_s is None else format_duration(save_s)} of {grace}"
    yield str(view["why"] or view["detail"])


def _snapshot(saved: dict[str, Any] | None, at_s: float) -> str:
    if saved is None:
        return UNKNOWN
    what = "values" if saved["step"] is None else f"step {saved['step']}"
    return f"{what}, {format_duration(max(0.0, at_s - saved['created_s']))} ago"


def _queue(waiting: Sequence[Row], at_s: float) -> Table:
    table = _table("WAITS ", "TIER ", "GPUS ", "FOR ", "WHAT ", "WHY")
    for row in waiting:
        what = f"{row.label or f'pid {row.pid}'} ({row.owner})"
        waited = format_duration(max(0.0, at_s - row.since_s))
        table.add_row(str(row.position), row.tier, str(row.gpus), waited, what, row.why)
    return table


def _notes(scene: Scene) -> Iterator[str]:
    if scene.fault is not None and any(device.kind is not DeviceKind.CPU for device in scene.devices):
        yield f"GPUs are not seen: {scene.fault}"
    for index, gpu in enumerate(scene.gpus):
        if gpu.stale:
            yield f"GPU {index} shows old values: {gpu.stale}"
        if gpu.throttled:
            yield f"GPU {index} is slowed down: {', '.join(gpu.throttled)}"
        if gpu.xids:
            yield f"GPU {index} has had errors: Xid {', '.join(map(str, gpu.xids))}"
    yield from scene.notes
