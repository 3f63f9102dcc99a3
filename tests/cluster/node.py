"""One node: `python -m tests.cluster.node KUBEPLANE STATE NUMBER INDEX NAME=COUNT…`, in a mount namespace of its own.

Kubelet, CNI and containerd have folders with fixed paths; each node sees its own there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.cluster.places import PAUSE, Ground
from tests.cluster.processes import start, succeeds, wait_until

FIXED = ("/var/lib/kubelet", "/var/lib/cni", "/run/netns", "/run/containerd")
PLUGINS = Path("/var/lib/kubelet/device-plugins")


def main(kubeplane: str, state: str, number: str, place: str, *resources: str) -> None:
    ground, index = Ground(Path(state), int(number)), int(place)
    folder = ground.state / f"node-{index}"
    for fixed in FIXED:
        own = folder / "own" / fixed[1:]
        own.mkdir(parents=True, exist_ok=True)
        Path(fixed).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", own, fixed], check=True)
    _containerd(ground, index, folder)
    for group in Path("/sys/fs/cgroup").iterdir():  # a kubelet clears away what it doesn't know below its root
        with suppress(OSError):
            (group / _cgroup(ground, index)).mkdir(exist_ok=True)
    (folder / "kubelet.yaml").write_text(json.dumps(_kubelet(ground, index, folder)))
    flags = ["--config", "kubelet.yaml", "--kubeconfig", str(ground.kubeconfig), "--cert-dir", "pki"]
    flags += ["--hostname-override", folder.name, "--node-ip", ground.address(index)]
    start(folder, "kubelet", [kubeplane, "kubelet", *flags])
    wait_until("the kubelet opens its plugins' socket", (PLUGINS / "kubelet.sock").is_socket, folder / "kubelet.log")
    start(folder, "devices", [kubeplane, "devices", PLUGINS, *resources])


def _cgroup(ground: Ground, index: int) -> str:
    return f"test-{ground.number}-node-{index}"


def _containerd(ground: Ground, index: int, folder: Path) -> None:
    bridge = {"type": "bridge", "bridge": ground.bridge(index), "isGateway": True, "hairpinMode": True}
    ranges = [[{"subnet": ground.subnet(index)}]]
    bridge["ipam"] = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    (folder / "cni").mkdir(exist_ok=True)
    network = {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}
    (folder / "cni" / "10-pods.conflist").write_text(json.dumps(network))
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    (folder / "containerd.toml").write_text(f"""version = 2
root = "{folder}/cd/root"
state = "{folder}/cd/state"
[grpc]
address = "{folder}/containerd.sock"
[{cri}]
restrict_oom_score_adj = true # without CAP_SYS_RESOURCE no sandbox starts otherwise
sandbox_image = "{PAUSE}"
[{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{folder}/cni"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
""")
    start(folder, "containerd", ["containerd", "-c", "containerd.toml"])
    answers = lambda: succeeds("ctr", "-a", folder / "containerd.sock", "version")  # noqa: E731
    wait_until("containerd answers", answers, folder / "containerd.log")


def _kubelet(ground: Ground, index: int, folder: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "address": ground.address(index),
        "healthzPort": 0,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{_cgroup(ground, index)}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "evictionHard": {},
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "podLogsDir": f"{folder}/podlogs",
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
