"""The control plane and its nodes: up, down, and what runs."""

from __future__ import annotations

import fcntl
import json
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.places import HERE, ClusterError, Ground
from tests.cluster.processes import end, lives, start, succeeds, wait_until

RESOURCES = ("nvidia.com/gpu=1", "nvidia.com/mig-1g.10gb=2")
CONTROL = ("controllers", "scheduler", "apiserver", "etcd")


def up(kubeplane: Path, ground: Ground, nodes: int = 2, resources: tuple[str, ...] = RESOURCES) -> Path:
    """Start a cluster whose nodes offer these resources each; return its kubeconfig.

    Raises ClusterError where one runs on this ground already, and with the log of what did not come up.
    """
    if runs(ground):
        raise ClusterError(
            f"A cluster runs there already: export KUBECONFIG={ground.kubeconfig}\n"
            "To end it and all Pods in it: python3 -m tests.cluster down"
        )
    down(ground)  # what a broken start or a killed one has left
    (ground.state / "pki").mkdir(parents=True, exist_ok=True)
    for index in range(nodes):
        bridge = ground.bridge(index)
        subprocess.run(["ip", "link", "add", bridge, "type", "bridge"], check=True)
        subprocess.run(["ip", "addr", "add", f"{ground.address(index)}/24", "dev", bridge], check=True)
        subprocess.run(["ip", "link", "set", bridge, "up"], check=True)
    _credentials(ground)
    _control(kubeplane, ground)
    for index in range(nodes):
        _node(kubeplane, ground, index, resources)
    kubectl: list[str | Path] = [kubeplane, "kubectl", "--kubeconfig", ground.kubeconfig]
    account = lambda: succeeds(*kubectl, "get", "serviceaccount", "default")  # noqa: E731
    wait_until("the default service account is made", account, ground.state / "controllers.log")
    for index in range(nodes):
        ready = lambda name=f"node-{index}": _offers(kubectl, name, resources)  # noqa: E731
        wait_until(f"node-{index} is ready with its resources", ready, ground.state / f"node-{index}" / "kubelet.log")
    return ground.kubeconfig


def runs(ground: Ground) -> bool:
    """Whether all of the control plane lives on this ground."""
    return all(lives(ground.state / f"{name}.pid") for name in CONTROL)


@contextmanager
def alone(ground: Ground) -> Iterator[None]:
    """Hold this ground; raises ClusterError where another test run holds it."""
    ground.state.mkdir(parents=True, exist_ok=True)
    with (ground.state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError("Another test run has its cluster on this machine; wait for its end.") from None
        yield


def down(ground: Ground) -> None:
    """End all of it and forget its objects; images stay. May be repeated."""
    nodes = ground.nodes
    for node in nodes:
        end(node / "devices.pid")
        end(node / "kubelet.pid")
    for name in CONTROL:  # a polite API server stays for a minute
        end(ground.state / f"{name}.pid", signal.SIGKILL)
    for node in nodes:
        _end_containers(node)
    time.sleep(1 if nodes else 0)
    for index, node in enumerate(nodes):
        end(node / "containerd.pid")
        (node / "node.pid").unlink(missing_ok=True)
        succeeds("ip", "link", "del", ground.bridge(index))
    time.sleep(1 if nodes else 0)  # mount namespaces go with their last process
    own = [folder for node in nodes for folder in (node / "own", node / "cd/state")]
    for gone in (ground.state / "etcd", ground.state / "pki" / "apiserver", *own):
        shutil.rmtree(gone, ignore_errors=True)


def _end_containers(node: Path) -> None:
    if (node / "containerd.pid").exists():
        ctr = ["ctr", "-a", str(node / "containerd.sock"), "-n", "k8s.io", "task"]
        for task in subprocess.run([*ctr, "ls", "-q"], capture_output=True, text=True).stdout.split():
            succeeds(*ctr, "kill", "-s", "KILL", task)


def _node(kubeplane: Path, ground: Ground, index: int, resources: tuple[str, ...]) -> None:
    """Start a node's programs in a mount namespace; they outlive the program that starts them."""
    folder = ground.state / f"node-{index}"
    folder.mkdir(exist_ok=True)
    apart = ["env", f"PYTHONPATH={HERE.parents[1]}", "unshare", "-m", "--propagation", "private"]
    inside = [sys.executable, "-m", "tests.cluster.node", str(kubeplane), str(ground.state), str(ground.number)]
    start(folder, "node", [*apart, *inside, str(index), *resources])


def _offers(kubectl: list[str | Path], node: str, resources: tuple[str, ...]) -> bool:
    got = subprocess.run([*kubectl, "get", "node", node, "-o", "json"], capture_output=True, text=True)
    if got.returncode:
        return False
    status = json.loads(got.stdout)["status"]
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status["conditions"])
    return ready and all(status["allocatable"].get(name) == count for name, count in (r.split("=") for r in resources))


def _credentials(ground: Ground) -> None:
    token, key = secrets.token_hex(16), ground.state / "pki" / "sa.key"
    if not key.exists():
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    authority = str(ground.state / "pki/apiserver/apiserver.crt")
    server = {
        "server": f"https://127.0.0.1:{ground.port(6443)}",
        "certificate-authority": authority,
        "tls-server-name": "localhost",
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": server}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    for path, text in (
        (ground.state / "tokens.csv", f"{token},admin,admin,system:masters\n"),
        (ground.kubeconfig, json.dumps(config)),
    ):
        path.touch(mode=0o600)
        path.write_text(text)


def _control(kubeplane: Path, ground: Ground) -> None:
    state = ground.state
    store, peers = f"http://127.0.0.1:{ground.port(23790)}", f"http://127.0.0.1:{ground.port(23800)}"
    etcd = {"data-dir": "etcd", "listen-client-urls": store, "advertise-client-urls": store, "listen-peer-urls": peers}
    etcd |= {"initial-advertise-peer-urls": peers, "initial-cluster": f"default={peers}", "unsafe-no-fsync": "true"}
    start(state, "etcd", [kubeplane, "etcd", *_flags(etcd)])
    api = {"etcd-servers": store, "secure-port": str(ground.port(6443)), "bind-address": "0.0.0.0"}
    api |= {"advertise-address": ground.address(0), "cert-dir": "pki/apiserver", "token-auth-file": "tokens.csv"}
    api |= {"service-account-issuer": "https://kubernetes.default.svc", "authorization-mode": "Node,RBAC"}
    api |= {"service-account-key-file": "pki/sa.key", "service-account-signing-key-file": "pki/sa.key"}
    api |= {"service-cluster-ip-range": "10.96.0.0/16", "kubelet-preferred-address-types": "InternalIP"}
    start(state, "apiserver", [kubeplane, "apiserver", *_flags({**api, "allow-privileged": "true"})])
    kubectl: list[str | Path] = [kubeplane, "kubectl", "--kubeconfig", ground.kubeconfig]
    answers = lambda: succeeds(*kubectl, "get", "--raw", "/readyz")  # noqa: E731
    wait_until("the API server is ready", answers, state / "apiserver.log")
    names = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    shared = {**dict.fromkeys(names, str(ground.kubeconfig)), "bind-address": "127.0.0.1", "leader-elect": "false"}
    start(state, "scheduler", [kubeplane, "scheduler", *_flags({**shared, "secure-port": str(ground.port(10259))})])
    own = {"service-account-private-key-file": "pki/sa.key", "use-service-account-credentials": "true"}
    own |= {"allocate-node-cidrs": "false", "secure-port": str(ground.port(10267))}
    start(state, "controllers", [kubeplane, "controllers", *_flags({**shared, **own})])


def _flags(values: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]
