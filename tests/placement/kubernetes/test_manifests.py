from __future__ import annotations

import json

import pytest

from jupyter_paddle_gpu.admin.app import main
from jupyter_paddle_gpu.placement.kubernetes.manifests import VERBS


def test_kubectl_gets_what_kernels_need_and_the_account_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "--namespace", "team", "--account", "jupyter"]) == 0
    printed = json.loads(capsys.readouterr().out)["items"]
    items = {f"{item['kind']} {item['metadata']['name']}": item for item in printed}
    role = items["Role jupyter-paddle-gpu"]
    given = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert given == {(resource, verb) for resource, verbs in VERBS.items() for verb in verbs}
    assert ("secrets", "get") not in given
    binding = items["RoleBinding jupyter-paddle-gpu"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "jupyter", "namespace": "team"}]
    notebook = items["PriorityClass paddle-gpu-notebook"]
    assert (notebook["value"], notebook["preemptionPolicy"]) == (-10, "Never")
    assert items["NetworkPolicy jupyter-paddle-gpu"]["metadata"]["namespace"] == "team"
