from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_paddle_gpu.core.agentspec import AgentSpec, SessionFiles
from jupyter_paddle_gpu.core.codec import from_plain, to_plain
from jupyter_paddle_gpu.core.device import CPU_SLOT, Device, DeviceKind, environment_of
from jupyter_paddle_gpu.core.errors import WireError
from jupyter_paddle_gpu.core.notice import Cause, EvictionNotice
from jupyter_paddle_gpu.core.request import GpuRequest
from jupyter_paddle_gpu.core.snapshot import SaveOutcome
from jupyter_paddle_gpu.core.wire import (
    MAX_LINE_BYTES,
    Answer,
    Hello,
    Message,
    Notice,
    Role,
    Served,
    Start,
    decode,
    encode,
)

notices = st.builds(
    EvictionNotice, st.sampled_from(Cause), st.floats(0, 3600), st.text(max_size=20), st.none() | st.integers(1, 99)
)
messages = (
    st.builds(Hello, st.sampled_from(Role), st.integers(1, 2**22))
    | st.builds(Notice, notices)
    | st.builds(
        Served,
        st.sampled_from(SaveOutcome),
        st.none() | st.just(Path("/快照/step 1")),
        st.none() | st.integers(0),
        st.floats(0, 100),
        st.text(max_size=30),
    )
    | st.builds(
        Answer, st.integers(), st.none() | st.dictionaries(st.text(max_size=5), st.integers()), st.none() | st.text()
    )
)


@given(messages)
def test_a_message_survives_its_line(message: Message) -> None:
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode(line) == message


def test_start_keeps_its_command_and_environment() -> None:
    start = decode(encode(Start(("python", "-m", "训练"), "/home/a b", {"A": "1"})))
    assert start == Start(("python", "-m", "训练"), "/home/a b", {"A": "1"})


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"{", "not JSON"),
        (b"[]", "without its kind"),
        (b'{"kind": "Nonsense"}', "unknown kind"),
        (b'{"kind": "Hello", "role": "king", "pid": 1}', "Hello.role"),
        (b'{"kind": "Hello", "role": "kernel", "pid": "1"}', "Hello.pid"),
        (b'{"kind": "Hello", "role": "kernel", "pid": true}', "Hello.pid"),
        (b'{"kind": "Hello", "role": "kernel"}', "pid"),
        (b'{"kind": "Hello", "role": "kernel", "pid": 1, "more": 2}', "'more'"),
        (b'{"kind": "Notice", "notice": []}', "EvictionNotice"),
        (b'{"kind": "Hello", "role": "kernel", "pid": null}', "Hello.pid"),
        (b'{"kind": "Start", "command": "python", "cwd": "/"}', "Start.command needs a list"),
        (b'{"kind": "Start", "command": [], "cwd": "/", "env": []}', "Start.env needs an object"),
        (b'{"kind": "Evict", "notice": {"cause": null, "remaining_s": 1}}', "EvictionNotice.cause"),
        (b'{"kind": "KernelExited", "exit_code": 1, "log_tail": null}', "KernelExited.log_tail"),
        (b'{"kind": "Change", "request": {"gpus": -1}}', "-1 is not a number of GPUs"),
        (b"[" * 100_000, "not JSON"),
        (b"x" * (MAX_LINE_BYTES + 1), "longer"),
    ],
)
def test_a_line_that_does_not_decode_names_the_fault(line: bytes, named: str) -> None:
    with pytest.raises(WireError) as caught:
        decode(line)
    assert named in str(caught.value)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_whatever_a_peer_sends_in_a_field_is_read_or_refused_as_a_message_that_does_not_decode(value: object) -> None:
    for kind, field in (
        ("Hello", "pid"),
        ("Hello", "role"),
        ("Start", "env"),
        ("Change", "request"),
        ("Stop", "save_s"),
    ):
        with suppress(WireError):
            decode(json.dumps({"kind": kind, field: value}).encode())


def test_an_agent_s_spec_survives_its_file() -> None:
    spec = AgentSpec(
        session="s-1",
        request=GpuRequest(1, None, "notebook", 15.0),
        devices=(CPU_SLOT, Device("MIG-1", DeviceKind.MIG, "1g.10gb", 10**10)),
        socket=Path("/run/s.sock"),
        kernel_log=Path("/data/kernel.log"),
    )
    assert from_plain(AgentSpec, json.loads(json.dumps(to_plain(spec)))) == spec


def test_a_request_out_of_bounds_does_not_decode_into_a_spec() -> None:
    with pytest.raises(WireError, match="grace"):
        from_plain(GpuRequest, {"grace_s": 0.0})


def test_a_session_s_socket_fits_a_unix_address() -> None:
    files = SessionFiles(Path("/d"), Path("/run/user/1000/jupyter/runtime/paddle-gpu"), "0123456789abcdef" * 4)
    assert len(str(files.socket).encode()) < 100


def test_devices_show_themselves_to_cuda_and_the_cpu_slot_does_not() -> None:
    assert environment_of([Device("3"), Device("MIG-7", DeviceKind.MIG)]) == {"CUDA_VISIBLE_DEVICES": "3,MIG-7"}
    assert environment_of([CPU_SLOT]) == {"CUDA_VISIBLE_DEVICES": ""}
