"""Whose memory it is, with real processes as Linux shows them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_paddle_gpu.telemetry.tenants import FOREIGN, HIDDEN, OTHERS, OWN, Tenants, shares

MIB = 1 << 20


def processes(*held: tuple[int, int | None]) -> Collection[Any]:
    """As nvidia-ml-py returns them."""
    return [SimpleNamespace(pid=pid, usedGpuMemory=held_bytes) for pid, held_bytes in held]


def test_this_process_and_its_children_are_the_session() -> None:
    code = "import subprocess, sys; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); p.wait()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        held = processes(
            (os.getpid(), MIB), (child.pid, 2 * MIB), (grandchild, 4 * MIB), (1, 8 * MIB), (os.getppid(), 1)
        )
        known, unknown = Tenants().shares(held)
        os.killpg(child.pid, 9)
    assert known == {OWN: 7 * MIB, OTHERS: 8 * MIB + 1}
    assert unknown == {}


def test_where_all_processes_are_seen_others_hold_what_is_not_ours() -> None:
    assert shares(processes((7, MIB)), lambda pid: False, sees_all=True) == ({OWN: 0, OTHERS: MIB}, {})
    assert shares([], lambda pid: False, sees_all=False) == ({OWN: 0, OTHERS: 0}, {})


@pytest.mark.parametrize(
    ("held", "reason"), [(((7, MIB),), FOREIGN), (((7, None),), HIDDEN), (((7, MIB), (8, None)), HIDDEN)]
)
def test_what_the_driver_does_not_tell_is_unknown(held: tuple[tuple[int, int | None], ...], reason: str) -> None:
    known, unknown = shares(processes(*held), lambda pid: False, sees_all=False)
    assert (known, unknown) == ({}, {OWN: reason, OTHERS: reason})
