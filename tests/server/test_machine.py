"""What a sidebar shows of the machine: who holds what, who waits, what a request would get."""

from __future__ import annotations

from jupyter_paddle_gpu.core.device import CPU_SLOT, Device
from jupyter_paddle_gpu.core.queue import Claim
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER
from jupyter_paddle_gpu.placement.base import Overview
from jupyter_paddle_gpu.server.machine import MachineView, look
from jupyter_paddle_gpu.server.view import SessionView
from tests.server.conftest import Machine, eventually
from tests.server.jupyter import JupyterServer

DEVICES = tuple(Device(str(index)) for index in range(3))


def claim(id_: str, tier: str, devices: tuple[str, ...] = (), gpus: int = 1, since_s: float = 0) -> Claim:
    rung = DEFAULT_LADDER.get(tier)
    return Claim(id_, tier, rung.priority, rung.preempts, len(devices) or gpus, since_s, "ada", id_, devices=devices)


def machine(*claims: Claim, sessions: tuple[SessionView, ...] = ()) -> MachineView:
    return look(Overview(DEVICES, claims, tuple(DEFAULT_LADDER)), sessions, now_s=100)


def reach(view: MachineView) -> dict[str, tuple[int, int]]:
    return {tier.name: (tier.now, tier.by_taking) for tier in view.tiers}


def session(id_: str, label: str, devices: tuple[str, ...] = (), position: int | None = None) -> SessionView:
    return SessionView(id_, label, "gpu", State.RUNNING, GpuRequest(), devices, position=position)


def test_an_idle_machine_is_free_for_everybody() -> None:
    view = machine()
    assert (view.noun, view.total, view.free, view.waiting) == ("GPU", 3, 3, ())
    assert [device.holder for device in view.devices] == [None] * 3
    assert set(reach(view).values()) == {(3, 3)}


def test_holders_are_told_with_the_sessions_of_this_server() -> None:
    view = machine(
        claim("nb", "notebook", ("0",)), claim("job", "batch", ("2",)), sessions=(session("s", "nb", ("0",)),)
    )
    first, free, last = view.devices
    assert first.holder is not None
    assert last.holder is not None
    assert (first.holder.label, first.holder.session, first.holder.evicted) == ("nb", "s", False)
    assert (free.holder, view.free) == (None, 1)
    assert (last.holder.label, last.holder.session) == ("job", None)


def test_a_tier_gets_what_is_free_and_what_lower_ones_hold() -> None:
    told = reach(machine(claim("nb", "notebook", ("0",)), claim("job", "training", ("1",))))
    assert told["urgent"] == (1, 3)
    assert told["training"] == (1, 2)
    assert told["batch"] == (1, 2)
    assert told["notebook"] == (1, 1)


def test_nobody_overtakes_who_waits() -> None:
    view = machine(
        claim("job", "training", ("0", "1", "2")),
        claim("nb", "notebook", since_s=1),
        claim("big", "batch", gpus=2, since_s=2),
        sessions=(session("s", "nb", position=2),),
    )
    assert [(waits.position, waits.label, waits.session) for waits in view.waiting] == [
        (1, "big", None),
        (2, "nb", "s"),
    ]
    assert "behind big (batch)" in view.waiting[1].why
    assert reach(view)["notebook"] == (0, 0)
    assert reach(view)["urgent"] == (0, 3)


def test_a_machine_without_a_gpu_has_a_slot() -> None:
    view = look(Overview((CPU_SLOT,), (), tuple(DEFAULT_LADDER)), (), 0)
    assert (view.noun, view.total, view.free) == ("CPU slot", 1, 1)


def test_a_server_tells_its_machine(machine: Machine) -> None:
    machine.add_kernelspec("gpu", {"gpus": 1})
    server = JupyterServer(machine.root, "server")
    try:
        kernel = server.open("a.ipynb", "gpu")["kernel"]["id"]
        eventually(lambda: server.state(kernel) == "running")
        told = server.ask("GET", "paddle-gpu/machine")
        (device,) = told["devices"]
        assert (told["free"], device["id"], device["holder"]["session"]) == (0, "0", kernel)
        ticket = machine.file("notebook")
        (waits,) = server.ask("GET", "paddle-gpu/machine")["waiting"]
        assert (waits["label"], waits["position"], waits["session"]) == ("notebook job", 1, None)
        ticket.release()
    finally:
        server.stop()
