"""The checks of the doctor, each a function that looks at the real thing and changes nothing that lasts."""

from __future__ import annotations

import importlib.metadata
import shutil
import tempfile
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_core.paths import jupyter_config_path
from jupyter_server.extension.config import ExtensionConfigManager

from jupyter_paddle_gpu.checkpoint import where
from jupyter_paddle_gpu.checkpoint.state import RawTensor, State
from jupyter_paddle_gpu.checkpoint.store import Store
from jupyter_paddle_gpu.core.device import Device, DeviceKind
from jupyter_paddle_gpu.core.errors import PaddleGpuError
from jupyter_paddle_gpu.core.finding import Finding, Verdict
from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.units import format_duration, format_size
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.telemetry.ancestors import in_container, shell_above

KERNEL, PROVISIONER = "paddle-gpu", "paddle-gpu-provisioner"
OLDEST_PADDLE = (2, 6)
TRIAL_BYTES = 64 * 2**20


def examine(book: Path) -> list[Finding]:
    """Return what all checks find, on the machine whose leases are in ``book``."""
    devices = find_devices(book)
    found = devices if isinstance(devices, tuple) else ()
    first = devices if isinstance(devices, Finding) else say_devices(devices)
    return [check_paddle(found), first, check_kernel(), check_server(), check_snapshots(), check_sigterm()]


def check_paddle(devices: tuple[Device, ...]) -> Finding:
    """Paddle is asked for by its distribution: importing it would take seconds, and its signal handlers with it."""
    versions = {name: _version_of(name) for name in ("paddlepaddle-gpu", "paddlepaddle")}
    name = next((name for name, version in versions.items() if version), None)
    if name is None:
        return _fault("Paddle", "not in this Python environment", "pip install 'jupyter-paddle-gpu[cpu]'")
    version = versions[name] or ""
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PADDLE:
        return _fault("Paddle", f"{name} {version}", "Install 2.6 or later.")
    if name == "paddlepaddle" and any(device.kind is not DeviceKind.CPU for device in devices):
        step = "Install paddlepaddle-gpu from Paddle's own index; the README says how."
        return _warning("Paddle", f"{name} {version} computes on the CPU, and there are GPUs", step)
    return _good("Paddle", f"{name} {version}")


def _version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def find_devices(book: Path) -> tuple[Device, ...] | Finding:
    """Return the devices of this machine, or why they cannot be lent."""
    try:
        opened = Book(book)
        opened.claims()
        return opened.devices()
    except PaddleGpuError as error:
        return _fault("GPUs", error.fault, error.next_step)


def say_devices(devices: tuple[Device, ...]) -> Finding:
    if all(device.kind is DeviceKind.CPU for device in devices):
        return _good("GPUs", "none here: the machine lends one CPU slot, and says so everywhere")
    names = ", ".join(f"{device.kind.value} {device.name or device.id}" for device in devices)
    return _good("GPUs", f"{len(devices)} to lend: {names}")


def check_kernel() -> Finding:
    """The kernel "Paddle GPU" is what people choose from the launcher."""
    try:
        spec = KernelSpecManager().get_kernel_spec(KERNEL)
    except NoSuchKernel:
        step = "pip install --force-reinstall jupyter-paddle-gpu"
        return _fault("kernel", f"Jupyter knows no kernel {KERNEL!r}", step)
    if not KernelProvisionerFactory.instance().is_provisioner_available(spec):
        step = "Install jupyter-paddle-gpu where the Jupyter server runs."
        return _fault("kernel", f"{PROVISIONER} is not installed beside Jupyter", step)
    return _good("kernel", f"“Paddle GPU” in {spec.resource_dir}")


def check_server() -> Finding:
    manager = ExtensionConfigManager(read_config_path=jupyter_config_path())
    enabled = manager.get_jpserver_extensions()  # type: ignore[no-untyped-call]  # jupyter_server has no types here
    if not enabled.get("jupyter_paddle_gpu"):
        return _fault("server", "the extension is not enabled", "jupyter server extension enable jupyter_paddle_gpu")
    return _good("server", "the extension is enabled")


def check_snapshots() -> Finding:
    """Save a small snapshot for trial: whether the disk takes it, and how fast."""
    root, grace_s = where.snapshot_root(), GpuRequest().grace_s
    made = not root.exists()
    state = State({"trial": RawTensor("U8", (TRIAL_BYTES,), memoryview(bytes(TRIAL_BYTES)))}, {})
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=root) as directory:
            store = Store(Path(directory))
            store.save(state, position=None, cause=Cause.MANUAL)
    except OSError as error:
        step = f"Choose another directory: {where.ENV_SNAPSHOTS}."
        return _fault("snapshots", f"{root} takes none: {error.strerror}", step)
    except PaddleGpuError as error:
        return _fault("snapshots", error.fault, error.next_step)
    free = shutil.disk_usage(root).free
    if made:
        root.rmdir()
    rate = store.rate or 0.0
    text = f"{root}: {format_size(free)} free, {format_size(int(rate))}/s"
    return _good("snapshots", f"{text}; a grace of {format_duration(grace_s)} saves {format_size(int(rate * grace_s))}")


def check_sigterm() -> Finding:
    """Whether the SIGTERM that ends a container reaches what runs here."""
    if not in_container():
        return _good("SIGTERM", "this is no container: each process gets its own")
    shell = shell_above()
    if shell is None:
        return _good("SIGTERM", "no shell stands between the container's end and this process")
    step = "Begin the command with exec, or leave the shell out; a program after a pipe or a semicolon never hears it."
    return _warning("SIGTERM", f"{shell} keeps it: a script below it is killed without notice", step)


def _good(what: str, found: str) -> Finding:
    return Finding(what, Verdict.GOOD, found)


def _warning(what: str, found: str, next_step: str) -> Finding:
    return Finding(what, Verdict.WARNING, found, next_step)


def _fault(what: str, found: str, next_step: str) -> Finding:
    return Finding(what, Verdict.FAULT, found, next_step)
