"""What Jupyter calls: a kernel's process, as jupyter_client sees one, is a session of ours."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Integer, Unicode

from jupyter_paddle_gpu.core.errors import KernelStartError
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.session import ENDED, State
from jupyter_paddle_gpu.server.driver import Driver
from jupyter_paddle_gpu.server.encryption import give_keys
from jupyter_paddle_gpu.server.environment import kernel_environment
from jupyter_paddle_gpu.server.manager import Manager
from jupyter_paddle_gpu.server.record import Launch
from jupyter_paddle_gpu.server.session import Session

FIRST_START_S = 10.0  # a kernel that dies at start does so within this, and the error can still be the starter's
LOOK_S = 0.05
LAST_S = 2.0  # an agent without a kernel ends within this


class PaddleGpuProvisioner(LocalProvisioner):
    """A kernel that runs under an agent, on leased devices.

    The fields below come from the kernelspec (``metadata.kernel_provisioner.config``). None of them given, it is a
    plain kernel without a GPU, as the local provisioner makes it. Ports, keys, connection file and command are the
    local provisioner's work too.
    """

    gpus = Integer(None, allow_none=True, help="Number of GPUs; None: no GPU, a plain kernel.")
    memory = Unicode(None, allow_none=True, help="Host memory, such as 16Gi.")
    tier = Unicode(None, allow_none=True, help="Tier of the request, such as notebook.")
    grace = Unicode(None, allow_none=True, help="Time between an eviction notice and the end, such as 60s.")

    _driver: Driver | None = None
    _running = False  # what jupyter_client calls a process: from launch to the end that it has waited for
    _held_interrupt = False

    @property
    def guarded(self) -> bool:
        """Whether this is a session of ours rather than a plain kernel: it saves before it ends."""
        return any(value is not None for value in (self.gpus, self.memory, self.tier, self.grace))

    @property
    def has_process(self) -> bool:
        return self._running

    @property
    def _drive(self) -> Driver:
        if self._driver is None:
            raise RuntimeError("This kernel was never launched")
        return self._driver

    @property
    def _session(self) -> Session:
        return self._drive.session

    @property
    def _kernel_manager(self) -> Any:
        return self.parent

    def _request(self, manager: Manager) -> GpuRequest:
        if not self.guarded:
            return GpuRequest(gpus=0)
        asked = {"gpus": self.gpus, "memory": self.memory, "tier": self.tier, "grace": self.grace}
        return manager.settings.default_request.changed(**asked)

    # Start.

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        manager = Manager.of_process()
        orphan = manager.orphan(str(self.kernel_id))
        if orphan is not None and self.parent is not None:
            connection = {**orphan.launch.connection}
            self.parent.load_connection_info(connection)
            self.ports_cached = True
        if manager.remote and self.parent is not None:
            give_keys(self.parent)
        kwargs = await super().pre_launch(**kwargs)
        kwargs["env"] = kernel_environment(kwargs["env"], self.guarded) | manager.settings.environment()
        return kwargs

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel. A session that must wait for its GPU is started too, and no error.

        Raises FileNotFoundError for a command that there is not; RequestError for a request that can never be met and
        KernelStartError for a kernel that dies at once, the latter two for a session of ours at its first start.
        """
        launch = self._launch(cmd, kwargs)
        manager = Manager.of_process()
        session = str(self.kernel_id)
        self.cwd = launch.cwd
        if self._driver is not None:
            await manager.call(self._driver.start(launch))
        elif manager.orphan(session) is not None:
            self._driver = await manager.adopt(session, launch)
        else:
            await self._first_start(manager, launch)
        self._running = True
        return self.connection_info

    def _launch(self, cmd: list[str], kwargs: dict[str, Any]) -> Launch:
        env: dict[str, str] = kwargs["env"]
        if shutil.which(cmd[0], path=env.get("PATH")) is None:
            raise FileNotFoundError(f"The kernel {self.kernel_spec.display_name} cannot be started: no {cmd[0]} here")
        info = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in self.connection_info.items()
            if name != "session"
        }
        return Launch(
            command=tuple(cmd),
            cwd=str(Path(kwargs.get("cwd") or Path.cwd()).absolute()),
            env=env,
            connection_file=Path(os.path.realpath(self._kernel_manager.connection_file)),
            connection=json.loads(json.dumps(info)),
            kernel_name=self._kernel_manager.kernel_name,
            label=_label(env, self._kernel_manager.kernel_name),
        )

    async def _first_start(self, manager: Manager, launch: Launch) -> None:
        request = self._request(manager)
        await manager.check(request)
        self._driver = await manager.open(str(self.kernel_id), request, self.guarded, launch)
        if not self.guarded:
            return
        await manager.call(self._session.settled(FIRST_START_S))
        if self._session.exit_code is not None:
            view = self._session.view()
            self.log.error("%s", view.detail)
            await self._end(manager, self._driver, 0)
            self._driver = None
            raise KernelStartError(view.detail, "Correct what the last lines say, then start the kernel again.")

    # Life.

    async def poll(self) -> int | None:
        if not self._running:
            return 0
        return self._session.exit_code

    async def wait(self) -> int | None:
        while (exit_code := await self.poll()) is None:  # noqa: ASYNC110  # the event would be another loop's
            await asyncio.sleep(LOOK_S)
        self._running = False
        return exit_code

    def get_stable_start_time(self, recommended: float = 10.0) -> float:
        """Return 0 once the kernel has answered: a restart after that keeps the ports."""
        return 0.0 if self._running and self._session.state is State.RUNNING else recommended

    async def send_signal(self, signum: int) -> None:
        """Signal the kernel's process group, but for the interrupt that begins a shutdown: it would end the cell whose
        state is about to be saved."""
        self._held_interrupt = signum == signal.SIGINT and self.guarded and bool(self._kernel_manager.shutting_down)
        if self._running and not self._held_interrupt:
            await self._signal(signum)

    async def _signal(self, signum: int) -> None:
        await Manager.of_process().call(self._drive.signal(signum))

    async def shutdown_requested(self, restart: bool = False) -> None:
        if not self._running:
            return
        if self._session.state in (State.REQUESTED, State.WAITING):
            self._session.kernel_ended(0)  # there is nothing to wait for
        if not restart and (self.guarded or self._session.exit_code is not None):
            await self._stop(self._session.record.request.grace_s)
        elif self._held_interrupt:
            await self._signal(signal.SIGINT)
        self._held_interrupt = False

    async def terminate(self, restart: bool = False) -> None:
        await self._end_kernel(signal.SIGTERM)

    async def kill(self, restart: bool = False) -> None:
        await self._end_kernel(signal.SIGKILL)

    async def _end_kernel(self, signum: int) -> None:
        """Signal the kernel; one that saves is left to its agent, which gives it its time."""
        if not self._running:
            return
        if not self._session.stopping and self._session.state is not State.EVICTING:
            await self._signal(signum)
        if self._session.state is not State.RUNNING:
            self._session.kernel_ended(-signum)  # there is no process yet, or it is not ours to wait for

    # End.

    async def _stop(self, save_s: float) -> None:
        await Manager.of_process().call(self._drive.stop(save_s))

    async def cleanup(self, restart: bool = False) -> None:
        if not restart and self._driver is not None:
            save_s = self._session.record.request.grace_s if self._session.state is State.EVICTING else 0.0
            await self._end(Manager.of_process(), self._driver, save_s)
            self._driver, self._running = None, False
        await super().cleanup(restart=restart)

    async def _end(self, manager: Manager, driver: Driver, save_s: float) -> None:
        """Stop the session and wait for its agent, unless that is still saving."""
        saving = driver.session.stopping or save_s > 0
        await manager.call(driver.stop(save_s))
        if not saving or driver.session.state in ENDED:
            await manager.call(driver.gone(LAST_S))
        await manager.call(manager.forget(driver.session.record.session))


def _label(env: dict[str, str], kernel_name: str) -> str:
    """Return what other people of the machine see: the notebook's path, seen from home; else the kernel's name."""
    notebook = env.get("JPY_SESSION_NAME")
    if not notebook:
        return kernel_name
    path = Path(notebook)
    return str(path.relative_to(Path.home())) if path.is_relative_to(Path.home()) else notebook
