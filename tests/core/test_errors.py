"""What an error says."""

from __future__ import annotations

import pytest

from jupyter_paddle_gpu.core.errors import PaddleGpuError, SnapshotMismatch


@pytest.mark.parametrize(
    ("fault", "next_step", "text"),
    [
        ("The disk is full", "Make room.", "The disk is full. Make room."),
        ("The disk is full.", "Make room.", "The disk is full. Make room."),
        ("Did you mean save?", "See --help.", "Did you mean save? See --help."),
        ("The disk is full", "", "The disk is full"),
    ],
)
def test_it_is_the_fault_and_the_next_step(fault: str, next_step: str, text: str) -> None:
    error = PaddleGpuError(fault, next_step)
    assert (str(error), error.fault, error.next_step) == (text, fault, next_step)


def test_another_model_is_told_line_by_line() -> None:
    error = SnapshotMismatch("Another model", ("fc.weight: 3 × 4, not 3 × 5", "fc.bias: missing"), "Build the same.")
    assert str(error).splitlines() == [
        "Another model. Build the same.",
        "  fc.weight: 3 × 4, not 3 × 5",
        "  fc.bias: missing",
    ]
