"""Images as OCI archives of layers, given to each node; a layer that a node has is not sent again."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.cluster import layers
from tests.cluster.places import PAUSE, ROOT, ClusterError, Ground
from tests.cluster.processes import lives

PADDLE = "localhost/jupyter-paddle-gpu"
OCI = "application/vnd.oci.image"
PATH = "PATH=/usr/local/bin:/usr/bin:/bin"


def load(ground: Ground, project: Path = ROOT, tag: str = "test") -> str:
    """Make the images and import them on every node; return the name of the one with Paddle and this project."""
    name = f"{PADDLE}:{tag}"
    user = {"User": f"{layers.USER}:{layers.USER}", "WorkingDir": layers.HOME, "Env": [PATH, f"HOME={layers.HOME}"]}
    give(ground, PAUSE, [layers.pause()], {"Entrypoint": ["/pause"], "Env": [PATH]})
    with tempfile.TemporaryDirectory() as folder:
        give(ground, name, [layers.debian(), layers.paddle(), layers.project(project, Path(folder))], user)
    return name


def give(ground: Ground, name: str, parts: list[Path], config: Mapping[str, object]) -> None:
    """Import an image of these layers, lowest first, on every node that runs."""
    nodes = [node for node in ground.nodes if lives(node / "containerd.pid")]
    if not nodes:
        raise ClusterError("There is no node to load images on; start one: python3 -m tests.cluster up.")
    for node in nodes:
        ctr = ["ctr", "-a", str(node / "containerd.sock"), "-n", "k8s.io"]
        held = subprocess.run([*ctr, "content", "ls", "-q"], capture_output=True, text=True).stdout.split()
        with tempfile.TemporaryDirectory(dir=ground.state) as folder:
            target = archive(name, parts, config, Path(folder, "image.tar"), frozenset(held))
            done = subprocess.run([*ctr, "image", "import", str(target)], capture_output=True, text=True)
        if done.returncode:
            raise ClusterError(f"{node.name} refused {name}: {done.stderr.strip()}")


def archive(
    name: str, parts: list[Path], config: Mapping[str, object], target: Path, held: frozenset[str] = frozenset()
) -> Path:
    """Write an OCI archive of these uncompressed layers, lowest first, without those ``held``; return the target."""
    digests = [_digest(layer) for layer in parts]
    image = {"architecture": "amd64", "os": "linux", "config": config}
    blobs: list[bytes] = []

    def blob(kind: str, content: object) -> dict[str, object]:
        blobs.append(json.dumps(content).encode())
        digest = f"sha256:{hashlib.sha256(blobs[-1]).hexdigest()}"
        return {"mediaType": f"{OCI}.{kind}", "digest": digest, "size": len(blobs[-1])}

    configured = blob("config.v1+json", {**image, "rootfs": {"type": "layers", "diff_ids": digests}})
    described = [
        {"mediaType": f"{OCI}.layer.v1.tar", "digest": digest, "size": layer.stat().st_size}
        for digest, layer in zip(digests, parts, strict=True)
    ]
    manifest = {"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json", "config": configured, "layers": described}
    listed = {**blob("manifest.v1+json", manifest), "annotations": {"io.containerd.image.name": name}}
    with tarfile.open(target, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(tar, "index.json", json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode())
        for content in blobs:
            _add(tar, f"blobs/sha256/{hashlib.sha256(content).hexdigest()}", content)
        for digest, layer in zip(digests, parts, strict=True):
            if digest not in held:
                tar.add(layer, f"blobs/sha256/{digest.removeprefix('sha256:')}")
    return target


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _digest(path: Path) -> str:
    """Return the layer's digest, kept beside it: reading a gigabyte takes seconds."""
    kept = path.with_suffix(".digest")
    if kept.exists() and kept.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        return kept.read_text()
    with path.open("rb") as stream:
        content = hashlib.sha256()
        while piece := stream.read(1 << 20):
            content.update(piece)
    kept.write_text(f"sha256:{content.hexdigest()}")
    return kept.read_text()
