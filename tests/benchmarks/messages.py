"""Kernel messages under our provisioner against Jupyter's own: round trip and throughput."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory

from tests.benchmarks.table import Figure, paired, percentile, spread

OURS, PLAIN = "paddle-gpu-provisioner", "local-provisioner"
ROUNDS = 12
TRIPS = 200
OUTPUTS = 1000


def measure() -> list[Figure]:
    with _kernel(OURS) as ours, _kernel(PLAIN) as plain:
        trips = paired(lambda: _round_trip_s(ours), lambda: _round_trip_s(plain), ROUNDS)
        floods = paired(lambda: _flood_s(ours), lambda: _flood_s(plain), ROUNDS)
    return [_compare("message round trip", *trips), _compare("output throughput", *floods)]


def _compare(name: str, ours: list[float], plain: list[float]) -> Figure:
    ratio = statistics.median(ours) / statistics.median(plain)
    noise = max(spread(ours), spread(plain))
    worst_ms = [1000 * percentile(series, 1) for series in (ours, plain)]
    detail = f"noise ±{100 * noise:.0f} %, worst {worst_ms[0]:.2f} ms against {worst_ms[1]:.2f} ms"
    return Figure(name, ratio, "of the plain one's time", "1 within the noise", ratio <= 1 + max(noise, 0.05), detail)


@contextmanager
def _kernel(provisioner: str) -> Iterator[BlockingKernelClient]:
    factory = KernelProvisionerFactory.instance()
    previous, factory.default_provisioner_name = factory.default_provisioner_name, provisioner
    manager = KernelManager(kernel_name="python3")
    try:
        assert isinstance(manager.kernel_spec, KernelSpec)
        manager.start_kernel()
    finally:
        factory.default_provisioner_name = previous
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _round_trip_s(client: BlockingKernelClient) -> float:
    started_s = time.perf_counter()
    for _ in range(TRIPS):
        client.kernel_info(reply=True, timeout=30)
    return (time.perf_counter() - started_s) / TRIPS


def _flood_s(client: BlockingKernelClient) -> float:
    """Seconds for a cell that publishes many small outputs, until its idle status is here."""
    code = (
        f"from IPython.display import publish_display_data as p\nfor i in range({OUTPUTS}): p({{'text/plain': str(i)}})"
    )
    started_s = time.perf_counter()
    client.execute_interactive(code, output_hook=lambda message: None, timeout=120)
    return time.perf_counter() - started_s
