"""The widget itself: what anywidget shows in JupyterLab, Notebook and VS Code, told from any thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from jupyter_paddle_gpu.core.quiet import QUIET_TOPIC
from jupyter_paddle_gpu.kernel.widget.buttons import press
from jupyter_paddle_gpu.kernel.widget.hearing import hear
from jupyter_paddle_gpu.kernel.widget.outlook import told
from jupyter_paddle_gpu.kernel.widget.picture import picture
from jupyter_paddle_gpu.kernel.widget.texts import texts
from jupyter_paddle_gpu.kernel.widget.watching import LOOKING_S, PERHAPS_S, Watch

HERE = Path(__file__).parent
SCRIPTS = ("words.js", "drawing.js", "screen.js")  # one module
KEPT = 300  # outlooks whose numbers a browser gets that comes, or comes back


def numbers_of(outlook: Mapping[str, Any]) -> list[list[float | None]]:
    """Return the numbers that lines are drawn of, in percent: load and memory of each GPU, of the host last."""
    reading = outlook["reading"] or {"gpus": [], "host": {}}
    host = reading["host"]
    cores = host.get("cpu_limit_cores")
    cpu = None if host.get("cpu_percent") is None or not cores else host["cpu_percent"] / cores
    return [
        *([gpu["utilization_percent"], _share(gpu, "memory_total_bytes")] for gpu in reading["gpus"]),
        [cpu, _share(host, "memory_limit_bytes")],
    ]


def _share(sample: Mapping[str, Any], limit: str) -> float | None:
    used, of = sample.get("memory_used_bytes"), sample.get(limit)
    return None if used is None or not of else round(100 * used / of, 1)


class WatchScreen(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget's types are those of ipywidgets: none
    """One output. Its traits are for the browser: they go out by ``post``, not by assignment, which is not made for
    several threads and would stand in the output of whatever cell runs."""

    _esm = "\n".join((HERE / part).read_text("utf-8") for part in SCRIPTS)
    _css = (HERE / "screen.css").read_text("utf-8")

    now = traitlets.Dict().tag(sync=True, to_json=lambda value, screen: screen.latest)
    past: traitlets.List[Any] = traitlets.List().tag(sync=True, to_json=lambda value, screen: list(screen.numbers))
    said = traitlets.Dict().tag(sync=True)  # of the button that was pressed last; see buttons.press
    texts = traitlets.Dict().tag(sync=True)

    def __init__(self, kernel: Any, watch: Watch, model_id: str | None = None) -> None:
        self.latest: dict[str, Any] = told(watch.glance())
        self.numbers: deque[list[list[float | None]]] = deque(maxlen=KEPT)
        self.period_s = PERHAPS_S
        self._kernel = kernel
        self._watch = watch
        self._looking: set[str] = set()  # browsers, by the name that they give themselves
        super().__init__(texts=texts(), **({} if model_id is None else {"model_id": model_id}))
        hear(kernel, watch)
        self.on_msg(lambda screen, content, buffers: self.heard(content))

    def post(self, outlook: dict[str, Any]) -> None:
        """Send this to the browsers (see watching.Screen): without a parent, so that it belongs to no cell, and under
        a topic by which our server knows that nobody has done anything."""
        self.latest = outlook
        self.numbers.append(numbers_of(outlook))
        self.tell(now=outlook)

    def tell(self, **state: object) -> None:
        """Send values of traits to the browsers, from any thread."""
        if self.comm is None:
            raise RuntimeError("This screen is closed")
        content = {"comm_id": self.comm.comm_id, "data": {"method": "update", "state": state, "buffer_paths": []}}
        session, socket = self._kernel.session, self._kernel.iopub_socket
        session.send(socket, "comm_msg", content, parent={}, ident=QUIET_TOPIC)

    def close(self) -> None:
        """See ipywidgets."""
        self._watch.remove(self)
        super().close()

    @property
    def comm_id(self) -> str:
        """See watching.Screen; empty: it is closed."""
        return "" if self.comm is None else str(self.comm.comm_id)

    def heard(self, content: dict[str, Any]) -> None:
        """Take what a browser says, from any thread: that it shows this screen or hides it, or a button was pressed."""
        if isinstance(shown := content.get("shown"), bool):
            browser = str(content.get("browser", ""))
            (self._looking.add if shown else self._looking.discard)(browser)
            self.period_s = LOOKING_S if self._looking else 0.0
            self._watch.look()
        elif (button := content.get("press")) is not None:
            press(str(button), self._said)

    def _said(self, said: Mapping[str, Any]) -> None:
        self.tell(said=said)
        if said["phase"] != "begun":
            self._watch.look(anew=True)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        facts = picture(self._watch.outlook())  # what an exported page shows
        return {**data, "text/plain": str(facts), "text/html": facts._repr_html_()}, metadata
