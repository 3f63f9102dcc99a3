"""What stands still: an exported page, a page without the widget, a terminal."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping

from jupyter_paddle_gpu.core.display import Facts
from jupyter_paddle_gpu.core.telemetry import GpuSample, HostSample
from jupyter_paddle_gpu.core.units import format_duration, format_memory, format_size
from jupyter_paddle_gpu.kernel.widget.outlook import Outlook, Standing
from jupyter_paddle_gpu.kernel.widget.texts import words


def picture(outlook: Outlook) -> Facts:
    """Return an outlook as named facts, in the language of this process."""
    word, stands = words(), outlook.standing
    rows = [(word["title"], state(outlook, word))]
    if stands.wanted is not None:
        rows.append(("", wish(stands, word)))
    rows += _seen(outlook, word)
    rows += [(word["budget"], budget(stands, word)), (word["snapshot"], snapshot(outlook, word))]
    seen_at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(outlook.at_s))
    return Facts(word["asof"].format(time=seen_at), rows, [stands.fault] if stands.fault else [])


def still(outlook: Outlook) -> Facts:
    """Return the picture where nothing live can be shown, and how to get it."""
    facts = picture(outlook)
    return dataclasses.replace(facts, rows=[*facts.rows, (words()["live"], words()["to-live"])])


def state(outlook: Outlook, word: Mapping[str, str]) -> str:
    """Return what the kernel does, and with what: ``running · notebook · GPU``."""
    stands = outlook.standing
    if outlook.leaving is not None and outlook.leaving.text:
        return outlook.leaving.text
    if not stands.session:
        return word["alone"]
    held = word[stands.device_kind or "none"] + (f" × {stands.devices}" if stands.devices > 1 else "")
    return " · ".join(filter(None, (word.get(stands.state, stands.state or word["unknown"]), stands.tier, held)))


def wish(stands: Standing, word: Mapping[str, str]) -> str:
    """Return what is waited for."""
    position = word["unknown"] if stands.position is None else stands.position
    return word["wants"].format(gpus=stands.wanted, position=position) + (f": {stands.why}" if stands.why else "")


def budget(stands: Standing, word: Mapping[str, str]) -> str:
    """Return what a save would take: ``2.1 GB, 4 s of 60 s``."""
    if not stands.saves:
        return word["nothing"]
    size = format_size(stands.nbytes)
    if stands.save_s is None:
        return word["unmeasured"].format(size=size)
    grace = word["unknown"] if stands.grace_s is None else format_duration(stands.grace_s)
    return word["fits"].format(size=size, save=format_duration(stands.save_s), grace=grace)


def snapshot(outlook: Outlook, word: Mapping[str, str]) -> str:
    """Return step, size and age of the newest snapshot."""
    newest = outlook.standing.snapshot
    if newest is None:
        return word["nosnapshot"]
    step = word["noposition"] if newest.step is None else word["step"].format(step=newest.step)
    age = word["ago"].format(age=format_duration(max(0.0, outlook.at_s - newest.created_s)))
    return f"{step}, {format_size(newest.nbytes)}, {age}"


def _seen(outlook: Outlook, word: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    reading = outlook.reading
    if reading is None:
        return
    if reading.fault is not None:
        yield word["GPU"], word["nodriver"].format(why=reading.fault)
    for gpu in reading.gpus:
        yield f"{word[gpu.kind.value]} {gpu.name or gpu.id}", _gpu(gpu, word)
    yield word["host"], _host(reading.host, word)


def _host(host: HostSample, word: Mapping[str, str]) -> str:
    used, cores = host.cpu_percent, host.cpu_limit_cores
    busy = word["cores"].format(
        used=word["unknown"] if used is None else f"{used / 100:.1f}",
        cores=word["unknown"] if cores is None else f"{cores:g}",
    )
    return f"{busy}, {_of(host.memory_used_bytes, host.memory_limit_bytes, word)}"


def _gpu(gpu: GpuSample, word: Mapping[str, str]) -> str:
    if gpu.stale is not None:
        return word["stale"].format(why=gpu.stale)
    percent = word["unknown"] if gpu.utilization_percent is None else f"{gpu.utilization_percent:.0f} %"
    memory = _of(gpu.memory_used_bytes, gpu.memory_total_bytes, word)
    return f"{word['load']} {percent}, {word['memory']} {memory}"


def _of(used: int | None, limit: int | None, word: Mapping[str, str]) -> str:
    a, b = (word["unknown"] if value is None else format_memory(value) for value in (used, limit))
    return word["of"].format(a=a, b=b)
