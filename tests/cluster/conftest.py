"""The cluster for the tests: KUBECONFIG's where it is set, this machine's own otherwise."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import build, images, plane
from tests.cluster.client import Cluster, Namespace, wait_until
from tests.cluster.places import OF_TESTS, check_machine, lacking

ENV_IMAGE = "PADDLE_GPU_TEST_IMAGE"  # an image on the nodes of KUBECONFIG's cluster: Paddle and this project


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that runs; skipped where the machine can run none, which in CI is a failure."""
    release = request.config.getoption("--kubernetes") or build.RELEASE
    if given := os.environ.get("KUBECONFIG"):
        kubectl = [found] if (found := shutil.which("kubectl")) else [str(build.kubeplane(release)), "kubectl"]
        image = os.environ.get(ENV_IMAGE) or f"{images.PADDLE}:test"
        yield Cluster(Path(given), kubectl, image)
        return
    if (lacks := lacking()) and not os.environ.get("CI"):
        pytest.skip(f"no KUBECONFIG is set, and to run a cluster of its own this machine lacks {', and '.join(lacks)}")
    check_machine()
    with plane.alone(OF_TESTS):
        plane.down(OF_TESTS)
        try:
            binary = build.kubeplane(release)
            config = plane.up(binary, OF_TESTS)
            yield Cluster(config, [str(binary), "kubectl"], images.load(OF_TESTS))
        finally:
            plane.down(OF_TESTS)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """A namespace of the test's own under Pod Security "restricted"; it goes with all that is in it."""
    own = Namespace(cluster, f"test-{secrets.token_hex(4)}")
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    own.apply({"kind": "Namespace", "metadata": {"name": own.name, "labels": restricted}})
    account = lambda: bool(own.call("get", "serviceaccount", "default"))  # noqa: E731 - without it no Pod is admitted
    wait_until(account, lambda: f"{own.name} has no default service account")
    yield own
    cluster.call("delete", "namespace", own.name, "--wait=false")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An account of the test's own."""
    with tempfile.TemporaryDirectory(prefix="pg") as runtime:
        for name in ("DATA", "CONFIG"):
            monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", runtime)
        monkeypatch.setenv("JUPYTER_PADDLE_GPU_BOOK", str(tmp_path / "book"))
        yield tmp_path
