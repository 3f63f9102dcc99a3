"""Snapshots against the raw device and against Paddle's own files, for 1 and 4 GB on a disk and on a memory disk.

Every pair is measured in turn, and the quickest of each counts: what else the machine does only ever adds time. A size
that the memory disk has no room for is left out there.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from jupyter_paddle_gpu.checkpoint.capture import tensors
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.checkpoint.training import Training
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.snapshot import Snapshot
from tests.benchmarks.table import Figure

SIZES_GB = (1, 4)
ROUNDS = 5
MEMORY_DISK = Path("/dev/shm")
_WRITE_BYTES = 16 * 2**20
_TENSOR_BYTES = 32 * 2**20


def measure() -> list[Figure]:
    figures = []
    for size_gb in SIZES_GB:
        live = [paddle.to_tensor(_noise(_TENSOR_BYTES)) for _ in range(size_gb * 10**9 // _TENSOR_BYTES)]
        for name, root in (("disk", None), ("memory disk", MEMORY_DISK)):
            if root is not None and _free_memory() < 6 * size_gb * 10**9:  # three files, and what Paddle needs to load
                continue
            with _directory(root) as directory:
                figures += [*_saving(live, directory, f"{size_gb} GB, {name}", name == "disk")]
    del live
    with _directory(None) as directory:
        figures += [_tiny(directory / "tiny"), _frozen(directory / "frozen"), _training(directory / "training")]
    return figures


def _free_memory() -> int:
    (kilobytes,) = re.findall(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return 1024 * int(kilobytes)


@contextmanager
def _directory(root: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=root, prefix="paddle-gpu-benchmark-") as directory:
        yield Path(directory)


def _noise(nbytes: int) -> Any:
    return np.random.default_rng(0).standard_normal(nbytes // 4, dtype=np.float32)


def _state(live: list[Any], frozen: int = 0) -> State:
    raw = {f"weight.{index}": tensors.live(tensor) for index, tensor in enumerate(live)}
    return State(raw, {}, frozenset(list(raw)[:frozen]))


def _saving(live: list[Any], directory: Path, where: str, cold: bool) -> Iterator[Figure]:
    state = _state(live)
    times = _quickest(
        raw=lambda: _raw_write(state, directory / "raw"),
        ours=lambda: _save(state, directory / "ours"),
        paddles=lambda: _paddle_save(live, directory / "state.pdparams"),
    )
    versus_raw, versus_paddle = times["raw"] / times["ours"], times["paddles"] / times["ours"]
    yield Figure(
        f"save against a raw write ({where})",
        versus_raw,
        "×",
        "≥ 0.95",
        versus_raw >= 0.95,
        _speed(state, times["ours"]),
    )
    least = 2 if cold else 4
    yield Figure(f"save against paddle.save ({where})", versus_paddle, "×", f"≥ {least}", versus_paddle >= least)
    share = 100 * _extra_memory(state, directory / "ours") / state.nbytes
    yield Figure(f"extra memory of a save ({where})", share, "%", "≤ 5 %", share <= 5)
    yield from _restoring(live, state, directory, where, cold)


def _restoring(live: list[Any], state: State, directory: Path, where: str, cold: bool) -> Iterator[Figure]:
    store = Store(directory / "ours")
    snapshot = store.save(state, position=None, cause=Cause.MANUAL)
    _raw_write(state, directory / "raw", keep=True)
    _paddle_save(live, directory / "state.pdparams", keep=True)
    times = _quickest(
        ours=lambda: _restore(store, snapshot, live),
        paddles=lambda: _paddle_restore(directory / "state.pdparams", live),
    )
    ratio = times["paddles"] / times["ours"]
    yield Figure(f"restore against paddle.load ({where})", ratio, "×", "≥ 3", ratio >= 3, _speed(state, times["ours"]))
    if cold:
        file = snapshot.path / "tensors.safetensors"
        times = _quickest(
            raw=lambda: _cold(directory / "raw", lambda: _raw_read(directory / "raw")),
            ours=lambda: _cold(file, lambda: store.load(snapshot)),
        )
        ratio = times["raw"] / times["ours"]
        yield Figure(
            f"restore from a cold disk against a raw read ({where})",
            ratio,
            "×",
            "≥ 0.9",
            ratio >= 0.9,
            _speed(state, times["ours"]),
        )


def _quickest(**what: Callable[[], float]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in what}
    for number in range(ROUNDS):
        names = list(what) if number % 2 else list(reversed(what))
        for name in names:
            times[name].append(what[name]())
    return {name: min(values) for name, values in times.items()}


def _seconds(work: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    work()
    return time.perf_counter() - begun_s


def _speed(state: State, seconds: float) -> str:
    return f"{state.nbytes / seconds / 1e9:.2f} GB/s"


def _raw_write(state: State, file: Path, keep: bool = False) -> float:
    """One thread writes the same bytes from the same memory, in order, and syncs them."""

    def write() -> None:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for tensor in state.tensors.values():
            for start in range(0, tensor.nbytes, _WRITE_BYTES):
                os.write(fd, tensor.data[start : start + _WRITE_BYTES])
        os.fsync(fd)
        os.close(fd)

    seconds = _seconds(write)
    if not keep:
        file.unlink()
    return seconds


def _raw_read(file: Path) -> None:
    buffer = bytearray(_WRITE_BYTES)
    with file.open("rb", buffering=0) as source:
        while source.readinto(buffer):
            pass


def _save(state: State, directory: Path) -> float:
    store = Store(directory)
    seconds = _seconds(lambda: store.save(state, position=None, cause=Cause.MANUAL))
    shutil.rmtree(directory)
    return seconds


def _paddle_save(live: list[Any], file: Path, keep: bool = False) -> float:
    seconds = _seconds(lambda: paddle.save({str(index): tensor for index, tensor in enumerate(live)}, str(file)))
    if not keep:
        file.unlink()
    return seconds


def _restore(store: Store, snapshot: Snapshot, live: list[Any]) -> float:
    def restore() -> None:
        loaded = store.load(snapshot)[1].tensors
        for index, tensor in enumerate(live):
            tensors.fill(tensor, loaded[f"weight.{index}"])

    return _seconds(restore)


def _paddle_restore(file: Path, live: list[Any]) -> float:
    def restore() -> None:
        loaded = paddle.load(str(file))
        for index, tensor in enumerate(live):
            tensor.set_value(loaded[str(index)])

    return _seconds(restore)


def _cold(file: Path, read: Callable[[], object]) -> float:
    """Read after the file's pages have left memory."""
    fd = os.open(file, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    return _seconds(read)


def _extra_memory(state: State, directory: Path) -> int:
    """Return the bytes by which the process grows at most while it saves."""
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from now on
    _save(state, directory)
    return max(0, _resident("VmHWM") - before)


def _resident(what: str) -> int:
    (kilobytes,) = re.findall(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kilobytes)


def _tiny(directory: Path) -> Figure:
    """10,000 tensors of 100 kB against one of 1 GB."""
    whole = _noise(10**9)
    part = whole.size // 10_000
    many = {
        f"layers.{index}.weight": RawTensor("F32", (part,), whole[index * part : (index + 1) * part].data)
        for index in range(10_000)
    }
    one = {"weight": RawTensor("F32", whole.shape, whole.data)}
    times = _quickest(one=lambda: _save(State(one, {}), directory), many=lambda: _save(State(many, {}), directory))
    ratio = times["many"] / times["one"]
    return Figure("10,000 tensors against one of that size", ratio, "×", "≤ 1.2", ratio <= 1.2)


def _frozen(directory: Path) -> Figure:
    """A second snapshot where one tensor of a hundred trains."""
    live = [paddle.to_tensor(_noise(10**6)) for _ in range(100)]
    store = Store(directory)
    first = store.save(_state(live, 99), position=None, cause=Cause.MANUAL).nbytes
    before = _on_disk(directory)
    store.save(_state(live, 99), position=None, cause=Cause.MANUAL)
    share = 100 * (_on_disk(directory) - before) / first
    return Figure("second snapshot with 99 % frozen weights", share, "%", "≤ 3 %", share <= 3)


def _on_disk(directory: Path) -> int:
    return sum({file.stat().st_ino: file.stat().st_size for file in directory.rglob("*")}.values())


def _training(directory: Path) -> Figure:
    """A training with 1 GB of state, with and without one save beside it."""
    training = Training()
    training.install()
    width = 2048
    model = paddle.nn.Sequential(*(paddle.nn.Linear(width, width) for _ in range(20)))
    optimizer = paddle.optimizer.Adam(parameters=model.parameters())
    batch = paddle.randn([256, width])
    store, steps = Store(directory, keep=1), 6

    def step() -> None:
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    def save() -> None:
        with training.frozen(60.0) as frozen:
            draft = store.write(frozen.state, position=frozen.position, cause=Cause.MANUAL)
        draft.commit()

    def train(beside: Callable[[], None] | None) -> float:
        """Return the seconds of the steps, the save beside them ended."""
        thread = threading.Thread(target=beside) if beside else None
        begun_s = time.perf_counter()
        for number, _ in training.steps([batch] * steps):
            if number == 1 and thread:
                thread.start()
            step()
        seconds = time.perf_counter() - begun_s
        if thread:
            thread.join()
        return seconds

    train(save)
    times = _quickest(alone=lambda: train(None), beside=lambda: train(save))
    lost = (times["beside"] - times["alone"]) / (times["alone"] / steps)
    detail = f"{training.nbytes() / 1e9:.1f} GB, a step takes {times['alone'] / steps:.2f} s"
    return Figure("training time lost to a save beside it", lost, "steps", "≤ 1", lost <= 1, detail)
