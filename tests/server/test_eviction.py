"""A session under a plain blocking client, no Jupyter server: its GPU is taken, and it comes back."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable

import pytest
from jupyter_client.manager import KernelManager

from jupyter_paddle_gpu.core.errors import KernelStartError, RequestError
from jupyter_paddle_gpu.core.session import State
from jupyter_paddle_gpu.placement.local.book import Book
from jupyter_paddle_gpu.placement.local.lease import Ticket
from jupyter_paddle_gpu.server.manager import Manager
from tests.server.conftest import Machine, Opened, back, begin, eventually, reply_to, run


@pytest.fixture(autouse=True)
def _gpu_spec(machine: Machine) -> None:
    machine.add_kernelspec("gpu", {"gpus": 1, "grace": "5s"})


def state(manager: KernelManager) -> State:
    return Manager.of_process().view(str(manager.kernel_id)).state


def take_gpu(machine: Machine) -> Ticket:
    ticket = machine.file()
    assert ticket.wait(timeout_s=20), "the GPU was not given up"
    return ticket


def test_an_evicted_kernel_comes_back_under_its_connection(start: Callable[..., Opened], machine: Machine) -> None:
    manager, client = start("gpu")
    assert run(client, "import os; x = 1; print(os.environ['CUDA_VISIBLE_DEVICES'])") == "0\n"
    ports, agent = manager.ports, machine.agents()[0].pid
    ticket = take_gpu(machine)
    eventually(lambda: state(manager) is State.WAITING)
    assert manager.is_alive()
    eventually(lambda: Manager.of_process().view(str(manager.kernel_id)).position == 1)
    assert "urgent job" in Manager.of_process().view(str(manager.kernel_id)).why
    ticket.release()
    eventually(lambda: state(manager) is State.RUNNING)
    back(client)
    assert "not defined" in run(client, "x")
    assert manager.ports == ports
    assert [process.pid for process in machine.agents()] != [agent]


def test_a_restart_keeps_the_gpu_and_the_agent(start: Callable[..., Opened], machine: Machine) -> None:
    manager, client = start("gpu")
    (agent,) = machine.agents()
    ticket = machine.file("notebook")  # somebody waits for the GPU all the time
    begin(client, "import time; time.sleep(60)")
    manager.restart_kernel()
    back(client)
    assert machine.agents() == [agent]
    assert machine.waiting() == ["notebook job"]
    ticket.release()


def test_a_waiting_kernel_is_started_without_an_error_and_leaves_the_queue_at_once(
    start: Callable[..., Opened], machine: Machine
) -> None:
    ticket = take_gpu(machine)
    manager, _ = start("gpu", wait=False)
    assert machine.waiting() == ["gpu"]
    assert manager.is_alive()
    began_s = time.monotonic()
    manager.shutdown_kernel()
    assert time.monotonic() - began_s < 1
    eventually(lambda: machine.waiting() == [], 1)
    ticket.release()


def test_a_waiting_kernel_delays_no_other(start: Callable[..., Opened], machine: Machine) -> None:
    machine.add_kernelspec("free", {})
    ticket = take_gpu(machine)
    waiting = [start("gpu", wait=False)[0] for _ in range(8)]
    _, client = start("free")
    assert run(client, "print(1)") == "1\n"
    assert [state(manager) for manager in waiting] == [State.REQUESTED] * 8
    for manager in waiting:
        manager.restart_kernel()  # stays in the queue
    assert len(machine.waiting()) == 8
    ticket.release()
    eventually(lambda: State.RUNNING in [state(manager) for manager in waiting])


def test_a_kernel_that_dies_at_start_shows_its_last_lines(
    machine: Machine, managed: Callable[[str], KernelManager]
) -> None:
    argv = [sys.executable, "-c", "raise ImportError('no module torn')", "{connection_file}"]
    machine.add_kernelspec("broken", {"gpus": 1}, argv)
    with pytest.raises(KernelStartError, match="ImportError: no module torn"):
        managed("broken").start_kernel()
    eventually(lambda: not machine.holders() and not machine.agents())


def test_a_kernel_with_an_impossible_port_fails_and_says_so(
    machine: Machine, managed: Callable[[str], KernelManager]
) -> None:
    ticket = take_gpu(machine)  # it has to wait, and holds its ports meanwhile
    manager = managed("gpu")
    manager.cache_ports, manager.shell_port = False, 99_999_999
    with pytest.raises(KernelStartError, match=r"OverflowError: .*port must be 0-65535"):
        manager.start_kernel()
    eventually(lambda: machine.waiting() == [])
    ticket.release()


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({"gpus": 2}, "2 GPUs were asked for"),
        ({"gpus": 1, "tier": "royal"}, "no tier 'royal'"),
        ({"grace": "1d"}, "1d"),
    ],
)
def test_a_request_that_can_never_be_met_is_an_error_of_the_start(
    config: dict[str, object], fault: str, machine: Machine, managed: Callable[[str], KernelManager]
) -> None:
    machine.add_kernelspec("wrong", config)
    with pytest.raises(RequestError, match=fault):
        managed("wrong").start_kernel()
    assert machine.waiting() == []


def test_the_gpu_goes_back_when_its_client_is_gone(machine: Machine, managed: Callable[[str], KernelManager]) -> None:
    manager = managed("gpu")
    manager.start_kernel()
    eventually(machine.holders)
    Manager.of_process().close()  # as at the end of a process that did not shut its kernel down
    eventually(lambda: not machine.holders(), 15)


def test_credentials_of_the_server_do_not_reach_the_kernel(
    start: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ["JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN", "JUPYTER_TOKEN", "CONFIGPROXY_AUTH_TOKEN"]
    for name in secrets:
        monkeypatch.setenv(name, "secret-value")
    _, client = start("gpu")
    assert run(client, f"import os; print([name for name in {secrets} if name in os.environ])") == "[]\n"
    assert run(client, "print('secret-value' in open(f'/proc/{os.getppid()}/environ').read())") == "False\n"


def test_a_request_is_changed_in_place_and_by_moving(start: Callable[..., Opened], machine: Machine) -> None:
    manager, client = start("gpu")
    sessions, session = Manager.of_process(), str(manager.kernel_id)
    run(client, "x = 1")

    def ask(**config: object) -> None:
        asyncio.run(sessions.change(session, config))

    ask(tier="urgent", grace="3s")
    eventually(lambda: [claim.tier for claim in Book(machine.book).claims()] == ["urgent"])
    assert run(client, "print(x)") == "1\n"
    with pytest.raises(RequestError, match="2 GPUs"):
        ask(gpus=2)
    ask(gpus=0)
    eventually(lambda: not machine.holders() and state(manager) is State.RUNNING)
    back(client)
    assert "not defined" in run(client, "x")
    ticket = take_gpu(machine)
    run(client, "x = 2")
    ask(gpus=1)
    eventually(lambda: sessions.view(session).position == 1)
    assert run(client, "print(x)") == "2\n", "the kernel goes on until there is a GPU"
    ticket.release()
    eventually(lambda: machine.holders() == ["gpu"] and state(manager) is State.RUNNING)
    back(client)
    assert "not defined" in run(client, "x")


def test_a_shutdown_leaves_the_save_its_time(start: Callable[..., Opened], machine: Machine) -> None:
    manager, client = start("gpu")
    saver = f"""
import signal, time, pathlib
def save(*_):
    time.sleep(4)
    pathlib.Path({str(machine.root / "saved")!r}).write_text("whole")
    raise SystemExit
signal.signal(signal.SIGTERM, save)
try:
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path({str(machine.root / "interrupted")!r}).touch()
"""
    begin(client, saver)
    began_s = time.monotonic()
    manager.shutdown_kernel()
    assert time.monotonic() - began_s < 4
    assert not manager.is_alive()
    eventually(lambda: (machine.root / "saved").exists() and not machine.agents(), 10)
    assert not (machine.root / "interrupted").exists(), "the training that is to be saved must not be torn"


def test_a_shutdown_does_not_wait_for_channels_that_the_kernel_has_closed(
    start: Callable[..., Opened], machine: Machine
) -> None:
    ours = [sys.executable, "-m", "jupyter_paddle_gpu.kernel", "-f", "{connection_file}"]
    machine.add_kernelspec("ours", {"gpus": 1, "grace": "30s"}, ours)
    manager, client = start("ours")
    run(client, "from jupyter_paddle_gpu import guard; guard.keep(best=0.5)")
    began_s = time.monotonic()
    manager.shutdown_kernel()
    eventually(lambda: machine.agents() == [])
    assert time.monotonic() - began_s < 4, "the kernel waited for its own shell channel"
    assert list(machine.data.rglob("manifest.json")), "nothing was saved"


def test_the_end_of_the_process_leaves_a_kernel_that_still_saves_to_its_agent(
    start: Callable[..., Opened], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    manager, client = start("gpu")
    begin(client, "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    manager.shutdown_kernel()
    assert machine.agents(), "the kernel does not save any more"
    Manager.of_process().close()
    gc.collect()
    assert lost == []
    eventually(lambda: machine.agents() == [])


def test_a_cell_is_interrupted_and_the_gpu_and_its_agent_stay(start: Callable[..., Opened], machine: Machine) -> None:
    """An interrupt ended the remote kernel with its process group [enterprise_gateway#1136]."""
    manager, client = start("gpu")
    (agent,) = machine.agents()
    run(client, "x = 7")
    request = begin(client, "import time; time.sleep(60)")
    manager.interrupt_kernel()
    assert reply_to(client, request)["ename"] == "KeyboardInterrupt"
    assert run(client, "print(x)") == "7\n"
    assert machine.agents() == [agent]
    assert machine.holders() == ["gpu"]


def test_a_kernel_behind_a_shell_is_evicted_and_comes_back(start: Callable[..., Opened], machine: Machine) -> None:
    """A kernelspec whose command is a shell's, which passes no SIGTERM on [docker-stacks#275]."""
    kernel = f"{sys.executable} -m jupyter_paddle_gpu.kernel -f {{connection_file}}; echo done"
    machine.add_kernelspec("wrapped", {"gpus": 1, "grace": "10s"}, ["sh", "-c", kernel])
    manager, client = start("wrapped")
    run(client, "from jupyter_paddle_gpu import guard; best = [7]; guard.keep(best=best)")
    began_s = time.monotonic()
    ticket = take_gpu(machine)
    assert time.monotonic() - began_s < 8, "saved when it was told, not ended at the end of its grace"
    eventually(lambda: state(manager) is State.WAITING)
    ticket.release()
    eventually(lambda: state(manager) is State.RUNNING)
    back(client)
    again = "from jupyter_paddle_gpu import guard; best = [0]; guard.keep(best=best)\nfor _ in guard.steps([1]): pass\n"
    assert run(client, again + "print(best)").endswith("[7]\n")


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os.kill(os.getpid(), 9)", "was killed (SIGKILL): if nobody did that, the machine or the container has run"),
        ("os._exit(137)", "was killed (SIGKILL)"),
        ("os.kill(os.getpid(), 11)", "was ended by SIGSEGV"),
        ("os._exit(3)", "ended with exit code 3"),
    ],
)
def test_a_kernel_that_is_gone_says_how_it_ended(
    start: Callable[..., Opened], machine: Machine, end: str, said: str
) -> None:
    """The kernel of the out-of-memory killer ended with nothing but “kernel died” [2i2c#3427, elyra#704]."""
    manager, client = start("gpu")
    client.execute(f"import os; {end}")
    eventually(lambda: not manager.is_alive())
    assert Manager.of_process().view(str(manager.kernel_id)).detail.startswith(f"The kernel {said}")


def test_a_kernel_that_dies_over_and_over_is_not_started_without_end(
    machine: Machine, managed: Callable[[str], KernelManager]
) -> None:
    """Jupyter's restarter gives up after its limit, and nobody else starts it again [jupyter_client#715]."""
    starts = machine.root / "starts"
    code = f"open({str(starts)!r}, 'a').write('x'); raise ImportError('torn')"
    machine.add_kernelspec("broken", {"gpus": 1}, [sys.executable, "-c", code, "{connection_file}"])
    with pytest.raises(KernelStartError):
        managed("broken").start_kernel()
    time.sleep(3)
    assert starts.read_text() == "x"
