"""status, request, release, explain, tiers: the GPU, and those who share it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from jupyter_paddle_gpu.core.display import Facts, Shown, Table
from jupyter_paddle_gpu.core.errors import AgentUnreachable, RequestError
from jupyter_paddle_gpu.core.request import FIELDS, GpuRequest
from jupyter_paddle_gpu.core.units import format_duration, format_quantity
from jupyter_paddle_gpu.kernel import client
from jupyter_paddle_gpu.kernel.commands.command import Command, Namespace
from jupyter_paddle_gpu.kernel.commands.others import ladder, overview
from jupyter_paddle_gpu.kernel.commands.watch import tail
from jupyter_paddle_gpu.kernel.commands.words import last_snapshot, prediction, too_short
from jupyter_paddle_gpu.kernel.move import move_notebook
from jupyter_paddle_gpu.kernel.runtime import runtime
from jupyter_paddle_gpu.kernel.status import look
from jupyter_paddle_gpu.language import word

NO_SESSION = "This is not a kernel “Paddle GPU”: it holds no GPU"


def session_view() -> Mapping[str, Any] | None:
    """Return what the server says of this kernel's session; None in a kernel that is not ours."""
    if runtime().link is None:
        return None
    view = runtime().call("status")
    return view if isinstance(view, dict) else None


def known_view() -> tuple[Mapping[str, Any] | None, list[str]]:
    """Return ``session_view`` as far as it can be had, and a warning where it cannot."""
    try:
        return session_view(), []
    except AgentUnreachable as error:
        return None, [str(error)]


def status(args: argparse.Namespace, variables: Namespace) -> Shown:
    guard = look(runtime())
    view, warnings = known_view()
    grace_s = guard.grace_s if view is None else float(view["request"]["grace_s"])
    rows = [*_device_rows(view), ("save", prediction(guard, grace_s))]
    rows.append(("last snapshot", last_snapshot(guard.newest)))
    rows.append(("automatic", _by_itself(guard.every_s)))
    rows.append(("kept", ", ".join(guard.kept) or "nothing; %paddle_gpu keep NAME adds variables"))
    if guard.due is not None:
        rows.append(("to restore", f"{guard.due.path.name}; guard.steps or %paddle_gpu restore takes it"))
    warnings += too_short(guard, grace_s)
    warnings += [f"The last snapshot by itself failed: {guard.periodic_fault}"] if guard.periodic_fault else []
    warnings += guard.limits
    warnings += [f"would not come back exactly: {text}" for text in runtime().training.inexact()]
    return Facts("Paddle GPU", rows, warnings)


def _by_itself(every_s: float | None) -> str:
    if not every_s:
        return "none until an eviction; %paddle_gpu request --every 10m makes some while a training runs"
    return f"one every {format_duration(every_s)} while a training runs"


def _device_rows(view: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if view is None:
        return [("GPU", f"{NO_SESSION}; %paddle_gpu request moves the notebook to one")]
    request = view["request"]
    devices = ", ".join(view["devices"])
    holds = f"{view['device_kind']} {devices}" if devices else "none"
    if view["device_kind"] == "CPU":
        holds = "the CPU slot of this machine (no GPU here)"
    if view.get("wanted"):
        holds += f"; waits for {view['wanted']['gpus']}"
        if view["position"] is not None:  # not known at once
            holds += f", position {view['position']}: {view['why']}"
    rows = [
        ("GPU", holds),
        ("state", word(view["state"]) + (f": {view['detail']}" if view["detail"] else "")),
        ("tier", _tier_in_words(request["tier"], bool(devices))),
        ("grace", format_duration(request["grace_s"])),
    ]
    if request["memory_bytes"]:
        rows.append(("memory", format_quantity(request["memory_bytes"])))
    return rows


def _tier_in_words(name: str, holds: bool) -> str:
    tiers = ladder()
    mine = next((tier for tier in tiers if tier.name == name), None)
    takers = [tier.name for tier in tiers if tier.preempts and (mine is None or tier.priority > mine.priority)]
    what = f"{name} ({mine.priority:,})" if mine else f"{name} (no longer on this machine's ladder: below all others)"
    return what + (f"; can be taken by {', '.join(takers)}" if takers and holds else "")


def _add_request_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpus", type=int, metavar="N", help="how many GPUs (0: none)")
    parser.add_argument("--memory", metavar="SIZE", help="host memory, such as 16Gi")
    parser.add_argument("--tier", metavar="TIER", help="the tier; %%paddle_gpu tiers lists them")
    parser.add_argument("--grace", metavar="TIME", help="between notice and end, 1s to 1h, such as 60s")
    parser.add_argument("--every", metavar="TIME", help="between snapshots: auto (the default), off, or such as 10m")


def request(args: argparse.Namespace, variables: Namespace) -> Shown:
    params = {name: getattr(args, name) for name in FIELDS}
    asked = GpuRequest().changed(**params)  # a fault is said before anything moves
    ladder().get(asked.tier)
    given = {name: value for name, value in params.items() if value is not None} or {"gpus": 1}
    guard, before = look(runtime()), session_view()
    if client.by_tool() and _moves(before, given):
        raise _needs_another_kernel(asked.gpus)
    if before is None:
        moved = [("what happens", move_notebook(given))]
        return Facts("The notebook moves to the kernel “Paddle GPU”", moved, too_short(guard, asked.grace_s))
    view = runtime().call("request", given)
    assert isinstance(view, dict), "the server answers with the session"  # noqa: S101  # a fault of ours
    grace_s = float(view["request"]["grace_s"])
    rows = _device_rows(view)
    if args.every is not None:
        every_s = view["request"]["every_s"]
        auto = "as often as a hundredth of the time allows"
        rows.append(("automatic", auto if every_s is None else _by_itself(every_s)))
    return Facts("Requested", rows, too_short(guard, grace_s))


def _moves(view: Mapping[str, Any] | None, given: Mapping[str, object]) -> bool:
    """Whether another kernel process is needed for that."""
    return view is None or given.get("gpus", view["request"]["gpus"]) != view["request"]["gpus"]


def _needs_another_kernel(gpus: int) -> RequestError:
    """Return why a notebook that a tool executes gets no other number of GPUs."""
    next_step = (
        "Give it the kernel “Paddle GPU” from the start: jupyter execute --kernel_name=paddle-gpu, "
        "papermill -k paddle-gpu, jupyter nbconvert --ExecutePreprocessor.kernel_name=paddle-gpu."
    )
    if gpus == 0:
        next_step = "Leave it out: the GPU is given back when the notebook ends."
    elif gpus > 1:
        next_step += f" It has 1 GPU: a copy of its kernelspec with {gpus} in “config” has {gpus}."
    return RequestError("Another number of GPUs needs a new kernel, and a tool does not begin again with it", next_step)


def release(args: argparse.Namespace, variables: Namespace) -> Shown:
    before = session_view()
    runtime().call("release")
    if before is not None and before["devices"]:
        what = "CPU slot" if before["device_kind"] == "CPU" else "GPU"
        return Facts(f"The {what} is given back after a save", [("next", f"the kernel starts again without a {what}")])
    if before is not None and before.get("wanted"):
        return Facts(f"The request for {before['wanted']['gpus']} is withdrawn; the kernel goes on as it is")
    return Facts("There is nothing to give back: this kernel holds no GPU")


def explain(args: argparse.Namespace, variables: Namespace) -> Shown:
    view, warnings = known_view()
    there = overview()
    claims = there.claims
    rows = [
        (
            word("holds" if claim.devices else "waits"),
            ", ".join(claim.devices) or str(claim.gpus),
            claim.tier,
            claim.owner,
            claim.label or f"pid {claim.pid}",
            there.why(claim.id) if not claim.devices else "",
        )
        for claim in sorted(claims, key=lambda claim: (not claim.devices, -claim.priority, claim.since_s))
    ]
    if view is None:
        title = "\n".join(warnings) or NO_SESSION
    elif view["why"]:
        title = f"Position {view['position']}: {view['why']}"
    else:
        title = f"This kernel is {view['state']}, tier {_tier_in_words(view['request']['tier'], True)}"
    held = sum(len(claim.devices) for claim in claims)
    if there.devices:
        title += f"\n{len(there.devices) - held} of {len(there.devices)} {there.noun} free on this machine"
    return Table(title, ("", "devices", "tier", "owner", "what", "why"), rows, "Nobody holds or waits for one.")


def tiers(args: argparse.Namespace, variables: Namespace) -> Shown:
    rows = [
        (tier.name, f"{tier.priority:,}", word("yes" if tier.preempts else "never"), tier.description)
        for tier in ladder()
    ]
    return Table("Tiers, the most urgent first", ("tier", "priority", "takes from lower ones", "for"), rows)


COMMANDS = (
    Command("status", "what this kernel holds, who could take it, how safe the training is", status),
    Command(
        "request",
        "ask for GPUs, or change what was asked for",
        request,
        _add_request_arguments,
        values={"--tier": lambda: [tier.name for tier in ladder()], "--every": lambda: ["auto", "off", "10m"]},
        after=partial(tail.show, moves=True),
    ),
    Command("release", "save, and give the GPU back", release),
    Command("explain", "why this kernel waits, and who holds what", explain),
    Command("tiers", "the ladder of priorities", tiers),
)
