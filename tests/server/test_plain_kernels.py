"""With an empty configuration every kernel works as under the local provisioner."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from tests.server.conftest import Machine, Opened, begin, eventually, reply_to, run


@pytest.fixture(autouse=True)
def _plain_spec(machine: Machine) -> None:
    machine.add_kernelspec("plain", {})


def test_it_runs_restarts_and_ends(start: Callable[..., Opened], machine: Machine) -> None:
    manager, client = start("plain")
    assert run(client, "x = 1; print(x)") == "1\n"
    ports = manager.ports
    manager.restart_kernel()
    client.wait_for_ready(timeout=30)
    assert manager.ports == ports
    assert "not defined" in run(client, "x")
    began_s = time.monotonic()
    manager.shutdown_kernel()
    assert time.monotonic() - began_s < 2
    assert not manager.is_alive()
    eventually(lambda: not machine.agents())
    assert not list((machine.data / "paddle-gpu" / "sessions").iterdir())


def test_a_cell_is_interrupted_by_signal_and_by_message(start: Callable[..., Opened]) -> None:
    manager, client = start("plain")
    for mode in ("signal", "message"):
        assert manager.kernel_spec is not None
        manager.kernel_spec.interrupt_mode = mode
        request = begin(client, "import time; time.sleep(60)")
        manager.interrupt_kernel()
        assert reply_to(client, request)["ename"] == "KeyboardInterrupt"


def test_a_busy_kernel_is_restarted_and_ended_within_the_usual_times(start: Callable[..., Opened]) -> None:
    manager, client = start("plain")
    deaf = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    for end in (manager.restart_kernel, manager.shutdown_kernel):
        begin(client, deaf + "while True:\n    try: time.sleep(60)\n    except BaseException: pass")
        began_s = time.monotonic()
        end()
        assert time.monotonic() - began_s < 8
        if end == manager.restart_kernel:
            client.wait_for_ready(timeout=30)
    assert not manager.is_alive()


def test_directory_environment_and_extra_arguments_arrive(
    machine: Machine, tmp_path: Path, managed: Callable[[str], KernelManager]
) -> None:
    manager = managed("plain")
    manager.start_kernel(
        cwd=str(tmp_path),
        env={"MINE": "1", "PATH": "/usr/bin:/bin", "JPY_PARENT_PID": "1", "JUPYTER_TOKEN": "stays", **machine.env},
        extra_arguments=["--IPKernelApp.exec_lines=y=7"],
    )
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=30)
    assert run(client, "import os; print(os.getcwd(), os.environ['MINE'], os.environ['JUPYTER_TOKEN'], y)") == (
        f"{tmp_path} 1 stays 7\n"
    )
    assert (
        run(client, "print(os.environ['JPY_PARENT_PID'] == str(os.getppid()), 'HOME' in os.environ)") == "True False\n"
    )
    client.stop_channels()
    manager.shutdown_kernel()


@pytest.mark.parametrize("options", [{"transport": "ipc"}, {"transport_encryption": "required"}])
def test_other_transports_and_encryption(options: dict[str, str], start: Callable[..., Opened]) -> None:
    manager, client = start("plain", **options)
    assert run(client, "print(2)") == "2\n"
    manager.restart_kernel()
    client.wait_for_ready(timeout=30)
    assert run(client, "print(3)") == "3\n"
    if "transport_encryption" in options:
        assert manager.curve_publickey


def test_a_command_that_is_not_there_is_an_error_of_the_start(
    machine: Machine, managed: Callable[[str], KernelManager]
) -> None:
    machine.add_kernelspec("nowhere", {}, ["no-such-program", "{connection_file}"])
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        managed("nowhere").start_kernel()


def test_a_kernel_that_ends_says_its_exit_code_and_can_be_started_again(start: Callable[..., Opened]) -> None:
    manager, client = start("plain")
    client.execute("import os; os._exit(3)")
    eventually(lambda: not manager.is_alive())
    assert manager.provisioner is not None
    manager.restart_kernel(now=True)
    client.wait_for_ready(timeout=30)
    client.execute(f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})")
    eventually(lambda: not manager.is_alive())
