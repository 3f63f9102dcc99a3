"""The one exception tree: every error names the fault and the next step."""

from __future__ import annotations

from jupyter_paddle_gpu.language import translated


class PaddleGpuError(Exception):
    """Base of all errors of this package.

    ``fault`` says what went wrong with the values that show it; ``next_step`` what the user can do about it
    (empty where nothing helps), both in English. ``str(error)`` is both in the user's language.
    """

    def __init__(self, fault: str, next_step: str = "") -> None:
        super().__init__(fault)
        self.fault = fault
        self.next_step = next_step

    def __str__(self) -> str:
        if not self.next_step:
            return translated(self.fault)
        return translated(f"{self.fault}{'' if self.fault.endswith(('.', '?', '!')) else '.'} {self.next_step}")


class RequestError(PaddleGpuError):
    """A request that cannot be understood or can never be met."""


class WireError(PaddleGpuError):
    """A message or a file of ours that does not decode."""


class UnknownMessage(WireError):
    """A message of a kind that another version of us has; it does not concern who does not know it."""


class SessionNotFound(PaddleGpuError):
    """No session has this identity."""


class PlacementError(PaddleGpuError):
    """The machine or the cluster refused, or cannot be reached."""


class PlaceTaken(PlacementError):
    """A place that was granted was taken away again before the agent answered. It may be asked for anew.

    ``by_node``: the node did not take it at all, as it may do the next time.
    """

    def __init__(self, fault: str, next_step: str = "", by_node: bool = False) -> None:
        super().__init__(fault, next_step)
        self.by_node = by_node


class AgentUnreachable(PaddleGpuError):
    """The agent of this session does not answer."""


class KernelRefused(PaddleGpuError):
    """The kernel was asked and could not, or would not: nothing to save, a cell that runs, another model."""


class KernelStartError(PaddleGpuError):
    """The kernel process ended before it was ready; the fault carries its last log lines."""


class PaddleMissing(PaddleGpuError):
    """PaddlePaddle cannot be imported in this kernel."""


class NotKept(PaddleGpuError):
    """A value was offered to ``keep`` that a snapshot cannot hold."""


class SnapshotError(PaddleGpuError):
    """A snapshot could not be written or read."""


class SnapshotNotFound(SnapshotError):
    """There is no such snapshot, or none at all."""


class SnapshotCorrupt(SnapshotError):
    """A snapshot is incomplete, fails its checksum or is not of our format. Nothing of it was used."""


class SnapshotMismatch(SnapshotError):
    """The snapshot belongs to another model or optimizer. Nothing was loaded.

    ``differences`` has one line for each parameter or state that differs.
    """

    def __init__(self, fault: str, differences: tuple[str, ...], next_step: str = "") -> None:
        super().__init__(fault, next_step)
        self.differences = differences

    def __str__(self) -> str:
        return "\n  ".join([super().__str__(), *map(translated, self.differences)])


class StoreUnwritable(SnapshotError):
    """The snapshot directory cannot be written: permission, read-only, full or over quota."""


class Evicted(PaddleGpuError):
    """The running cell was ended because the GPU was given up. Its state is in the snapshot that the text names.

    ``where`` has the lines of the user's code that it ended; ``shown`` says whether IPython has come to show them.
    """

    def __init__(self, fault: str, where: tuple[str, ...] = ()) -> None:
        super().__init__(fault)
        self.where = where
        self.shown = False

    def _render_traceback_(self) -> list[str]:
        """IPython shows this instead of the stack, which is full of Paddle's frames and ours, and takes it seconds."""
        self.shown = True
        return [*map(translated, self.where), f"{type(self).__name__}: {self}"]
