"""The demo without hands: train, urgent job in the middle, return, end; losses compared with the undisturbed ones."""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jupyter_paddle_gpu.admin.demo import notebook
from jupyter_paddle_gpu.admin.demo.browser import Browser, CellResult
from jupyter_paddle_gpu.admin.demo.server import DemoServer
from jupyter_paddle_gpu.core.errors import PaddleGpuError

LOSSES = "print([loss.hex() for loss in history])"
BACK_S = 120.0
URGENT = "import time; print('the urgent job runs'); time.sleep(2)"


class Clock:
    """Prints what happens, with the seconds since the beginning."""

    def __init__(self) -> None:
        self._start_s = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._start_s:7.1f} s  {text}", flush=True)


class Story:
    """One notebook, played to its end with ``evictions`` on the way, at least ``apart`` steps from one to the next."""

    def __init__(self, server: DemoServer, path: Path, clock: Clock, evictions: int = 0, apart: int = 0) -> None:
        self._server, self._path, self._clock = server, path, clock
        self._node = notebook.read(path)
        self._browser = Browser(server.url, server.token, path.name)
        self._evictions_left = evictions
        self._apart, self._next_at_step = apart, 0
        self._job: subprocess.Popen[str] | None = None
        self.evicted = 0  # how often it happened

    async def play(self) -> list[str]:
        """Run the cells, from the top again after each eviction; write the executed notebook; return the losses."""
        await self._browser.open()
        try:
            while (losses := await self._run_all()) is None:
                await self._come_back()
        finally:
            await self._browser.close()
            await self._end_job()  # one that came too late for an eviction gets the device now
        notebook.write(self._node, self._path)
        return losses

    async def _run_all(self) -> list[str] | None:
        """Run all cells and return the losses; None when an eviction ended one of them."""
        count = 0
        for cell in self._node.cells:
            if cell.cell_type != "code":
                continue
            count += 1
            training = "training" in cell.metadata.get("tags", [])
            result = await self._browser.execute(cell.source, self._watch if training else None)
            cell.outputs, cell.execution_count = [_node(output) for output in result.outputs], count
            if self._ended_by_eviction(result, cell.source):
                return None
        result = await self._browser.execute(LOSSES)
        return None if self._ended_by_eviction(result, LOSSES) else ast.literal_eval(result.text)

    def _ended_by_eviction(self, result: CellResult, code: str) -> bool:
        """Raises PaddleGpuError where something else ended the cell."""
        if result.ename == "Evicted":
            self.evicted += 1
            self._clock.say(f"the cell ended: {result.evalue}")
        elif result.ename is not None:
            raise PaddleGpuError(f"A cell failed: {result.ename}: {result.evalue}\n{code}")
        return result.ename is not None

    def _watch(self, output: dict[str, Any]) -> None:
        """See the training's output, and start the urgent job in the middle of it."""
        for step, loss in re.findall(r"step (\d+): loss ([\d.]+)", output.get("text", "")):
            self._clock.say(f"training, step {step}, loss {loss}")
            if self._evictions_left and self._job is None and int(step) > self._next_at_step:
                self._evictions_left -= 1
                self._next_at_step = int(step) + self._apart
                self._clock.say("an urgent job asks for the " + self._server.book.noun)
                command = ["-m", "jupyter_paddle_gpu", "run", "--tier", "urgent", "--gpus", "1", "--"]
                self._job = subprocess.Popen(
                    [sys.executable, *command, sys.executable, "-c", URGENT],
                    env=self._server.environment,
                    stdout=subprocess.PIPE,
                    text=True,
                )

    async def _come_back(self) -> None:
        await self._end_job()
        try:
            await asyncio.wait_for(self._browser.wait_until_back(), BACK_S)
        except asyncio.TimeoutError:
            raise PaddleGpuError(f"The kernel did not come back within {BACK_S:.0f} s") from None
        self._clock.say("the kernel is back on the same connection; the cells are run again from the top")

    async def _end_job(self) -> None:
        if self._job is not None:
            output, _ = await asyncio.to_thread(self._job.communicate)
            self._clock.say(f"{output.strip()}; it ended with exit code {self._job.returncode}")
            self._job = None


def _node(output: dict[str, Any]) -> Any:
    from nbformat import from_dict

    return from_dict(output)  # type: ignore[no-untyped-call]  # nbformat has no types


def tell(out: Path, evictions: int) -> int:
    """Play the notebook with evictions and without, compare, and return the exit code: 0 when all losses are equal."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="paddle-gpu-") as private:
        losses, expected, evicted = asyncio.run(_both(out, Path(private), evictions, clock))
    differing = [step for step, pair in enumerate(zip(losses, expected, strict=False)) if pair[0] != pair[1]]
    clock.say(f"{len(losses)} losses with {evicted} eviction(s), {len(expected)} without")
    if differing or len(losses) != len(expected) or not losses:
        clock.say(f"THEY DIFFER: first at step {differing[0] if differing else min(len(losses), len(expected))}")
        return 1
    clock.say("every loss is equal, bit for bit")
    if evicted < evictions:
        clock.say(
            f"but the training ended before {evictions - evicted} of the {evictions} evictions that were asked for"
        )
        return 1
    print(f"\nThe executed notebook: {out / notebook.name()}\nThe picture:           {out / 'loss.png'}")
    return 0


async def _both(out: Path, private: Path, evictions: int, clock: Clock) -> tuple[list[str], list[str], int]:
    """Return the losses with evictions, those without, and how many evictions there were."""
    undisturbed = private / "undisturbed"
    undisturbed.mkdir()
    with DemoServer(undisturbed, _made(private / "a")) as server:
        clock.say(f"Jupyter server ready; one {server.book.noun} to share. First the training never evicted:")
        expected = await Story(server, notebook.copy_to(undisturbed), clock).play()
    with DemoServer(out, _made(private / "b")) as server:
        urgent = {0: "once more, undisturbed", 1: "with an urgent job in the middle"}
        clock.say(f"Now the same training, {urgent.get(evictions, f'with {evictions} urgent jobs')}:")
        story = Story(server, notebook.copy_to(out), clock, evictions, len(expected) // (evictions + 1))
        return await story.play(), expected, story.evicted


def _made(path: Path) -> Path:
    path.mkdir()
    return path
