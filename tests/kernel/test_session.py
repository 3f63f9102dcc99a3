"""What a real kernel with an agent tells of its training without being asked."""

from __future__ import annotations

from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.telemetry import KernelSample
from jupyter_paddle_gpu.core.wire import KernelSeen, Restored, Saved, Watch
from tests.kernel.kernels import AgentEnd, Notebook

TRAIN = """
import paddle, time
from jupyter_paddle_gpu import guard
paddle.seed(1)
network = paddle.nn.Linear(8, 1)
optimizer = paddle.optimizer.SGD(0.01, parameters=network.parameters())
loader = paddle.io.DataLoader([paddle.ones([8]) for _ in range(6)], batch_size=1)
for step, batch in guard.steps(loader, epochs=1):
    loss = network(batch).mean(); loss.backward(); optimizer.step(); optimizer.clear_grad()
"""


def until(agent: AgentEnd, step: int | None) -> KernelSample:
    """Return the first sample of this step; the agent's patience ends a wait for nothing."""
    while (sample := agent.wait(KernelSeen).sample).step != step:
        pass
    return sample


def test_a_kernel_tells_of_itself_while_somebody_looks(evictable: Notebook, agent: AgentEnd) -> None:
    agent.send(Watch(0.05))
    sample = until(agent, None)
    assert (sample.allocated_bytes, sample.state_bytes) == (None, None)
    assert "not imported" in sample.unknown["allocated_bytes"]
    evictable.good(TRAIN)
    sample = until(agent, 6)
    assert sample.unknown == {}
    assert sample.device == "cpu"
    assert sample.allocated_bytes is not None
    assert sample.reserved_bytes is not None
    assert sample.peak_bytes is not None
    assert 0 < sample.allocated_bytes <= sample.peak_bytes
    assert sample.allocated_bytes <= sample.reserved_bytes


def test_saves_and_restores_are_told(evictable: Notebook, agent: AgentEnd) -> None:
    evictable.good(TRAIN)
    evictable.good("guard.save()")
    saved = agent.wait(Saved).snapshot
    assert (saved.cause, saved.step) == (Cause.MANUAL, 6)
    evictable.good("guard.restore()")
    restored = agent.wait(Restored)
    assert restored.snapshot == saved
    assert restored.seconds > 0
    evictable.good("guard.drill()")
    evictable.good("guard.save()")
    assert agent.wait(Saved).snapshot.cause is Cause.MANUAL, "what is only played is no snapshot"
