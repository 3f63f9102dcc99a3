"""``%paddle_gpu`` in a kernel that has a session."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.server.conftest import Machine, Opened, eventually, run


def test_status_says_what_is_held_and_who_could_take_it(start: Callable[..., Opened], machine: Machine) -> None:
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "45s", "memory": "1Gi"})
    _, client = start("gpu")
    run(client, "%load_ext jupyter_paddle_gpu")
    shown = run(client, "%paddle_gpu status")
    for part in ("GPU 0", "running", "notebook (-10); can be taken by urgent, service,", "45 s", "1Gi"):
        assert part in shown
    tiers = {"high": {"priority": 5}, "low": {"priority": 1, "preempts": False}}
    (machine.book / "machine.json").write_text(json.dumps({"gpus": ["0"], "tiers": tiers}))
    shown = run(client, "%paddle_gpu status")
    assert "notebook (no longer on this machine's ladder: below all others); can be taken by high\n" in shown


def test_release_says_what_it_gives_back(start: Callable[..., Opened], machine: Machine) -> None:
    machine.add_kernelspec("gpu", {"gpus": 1})
    _, client = start("gpu")
    run(client, "%load_ext jupyter_paddle_gpu")
    assert "The GPU is given back after a save" in run(client, "%paddle_gpu release")
    eventually(lambda: not machine.holders())
    client.wait_for_ready(timeout=30)
    run(client, "%load_ext jupyter_paddle_gpu")
    assert "There is nothing to give back: this kernel holds no GPU" in run(client, "%paddle_gpu release")
    urgent = machine.file()
    urgent.wait(None, 10)
    asked = run(client, "%paddle_gpu request --gpus 1")
    assert "waits for 1" in asked
    assert "None" not in asked
    eventually(lambda: "waits for 1, position 1: " in run(client, "%paddle_gpu status"))
    assert "The request for 1 is withdrawn" in run(client, "%paddle_gpu release")
    assert machine.waiting() == []
    urgent.release()


def test_without_a_gpu_it_says_cpu(start: Callable[..., Opened], machine: Machine) -> None:
    (machine.book / "machine.json").unlink()
    machine.add_kernelspec("gpu", {"gpus": 1})
    _, client = start("gpu")
    run(client, "%load_ext jupyter_paddle_gpu")
    assert "the CPU slot of this machine (no GPU here)" in run(client, "%paddle_gpu status")
    shown = run(client, "%paddle_gpu release")
    assert "The CPU slot is given back after a save" in shown
    assert "GPU is given" not in shown
