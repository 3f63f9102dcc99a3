from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jupyter_paddle_gpu.core import queue
from jupyter_paddle_gpu.core.queue import Claim, plan
from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER

DEVICES = ["0", "1", "2"]


def claim(name: str, tier: str = "notebook", gpus: int = 1, since_s: float = 0.0, devices: str = "") -> Claim:
    rung = DEFAULT_LADDER.get(tier)
    return Claim(
        name,
        tier,
        rung.priority,
        rung.preempts,
        gpus,
        since_s,
        label=name,
        devices=tuple(devices.split(",") if devices else ()),
    )


@st.composite
def situations(draw: st.DrawFn) -> list[Claim]:
    """Claims on three devices: some hold, some wait."""
    free = list(DEVICES)
    claims = []
    for index in range(draw(st.integers(0, 8))):
        tier = draw(st.sampled_from([tier.name for tier in DEFAULT_LADDER]))
        gpus = draw(st.integers(1, 3))
        held: list[str] = []
        if gpus <= len(free) and draw(st.booleans()):
            held, free = free[:gpus], free[gpus:]
        claims.append(claim(f"c{index}", tier, gpus, draw(st.integers(0, 5)), ",".join(held)))
    return claims


@given(situations())
def test_no_device_is_given_to_two(claims: list[Claim]) -> None:
    granted = [device for devices in plan(claims, DEVICES).grants.values() for device in devices]
    held = [device for one in claims for device in one.devices]
    assert len(set(granted + held)) == len(granted + held)
    assert set(granted) <= set(DEVICES)


@given(situations())
def test_nobody_overtakes_the_queue(claims: list[Claim]) -> None:
    grants = plan(claims, DEVICES).grants
    order = [one.id for one in queue.waiting_in_order(claims)]
    assert order[: len(grants)] == [name for name in order if name in grants]


@given(situations())
def test_only_lower_tiers_are_evicted_by_those_who_may_and_for_no_more_than_is_needed(claims: list[Claim]) -> None:
    by_id = {one.id: one for one in claims}
    evictions = plan(claims, DEVICES).evictions
    for victim, taker in evictions.items():
        assert by_id[victim].priority < by_id[taker].priority
        assert by_id[taker].preempts
    free = len(DEVICES) - sum(len(one.devices) for one in claims)
    for taker in set(evictions.values()):
        sizes = [len(by_id[victim].devices) for victim, by in evictions.items() if by == taker]
        assert sum(sizes) - min(sizes) < by_id[taker].gpus
    assert sum(len(by_id[v].devices) for v in evictions) + free >= max(
        (by_id[t].gpus for t in evictions.values()), default=0
    )


@given(situations())
def test_carrying_out_the_plan_leads_to_rest_with_the_head_of_the_queue_served(claims: list[Claim]) -> None:
    for _ in range(20):
        step = plan(claims, DEVICES)
        if not step.grants and not step.evictions:
            break
        claims = [
            replace(one, devices=step.grants.get(one.id, one.devices)) for one in claims if one.id not in step.evictions
        ]
    else:
        raise AssertionError("the plan does not come to rest")
    waiting = queue.waiting_in_order(claims)
    if waiting and waiting[0].preempts:
        lower = sum(len(one.devices) for one in claims if one.priority < waiting[0].priority)
        free = len(DEVICES) - sum(len(one.devices) for one in claims)
        assert free + lower < waiting[0].gpus


def test_the_latest_comer_of_the_lowest_tier_gives_way() -> None:
    claims = [
        claim("batch", "batch", devices="0"),
        claim("old notebook", since_s=1, devices="1"),
        claim("new notebook", since_s=2, devices="2"),
        claim("job", "urgent", since_s=3),
    ]
    assert plan(claims, DEVICES).evictions == {"new notebook": "job"}


def test_devices_on_their_way_back_are_not_taken_twice() -> None:
    victim = replace(claim("notebook", devices="0"), evicted_by="job")
    claims = [victim, claim("other", devices="1"), claim("third", devices="2"), claim("job", "urgent")]
    assert plan(claims, DEVICES).evictions == {}


def test_a_notebook_waits_and_is_told_why() -> None:
    claims = [claim("a", "batch", devices="0"), claim("first"), claim("second", since_s=1)]
    assert plan(claims, ["0"]) == queue.Plan()
    assert queue.position(claims, "second") == 2
    why = queue.why_waiting(claims, "second", ["0"])
    assert "0 of 1 free; held by a (batch); behind first (notebook)" in why
    assert "does not take GPUs from others" in queue.why_waiting(claims, "first", ["0"])
    assert queue.why_waiting(claims[1:], "first", ["0"]) == "Needs 1 GPU, 1 of 1 free: it is served next."


def test_the_place_after_an_eviction_is_behind_those_who_wait_and_does_not_count_the_taker() -> None:
    held = replace(claim("me", devices="0"), evicted_by="job")
    claims = [held, claim("job", "urgent"), claim("other notebook", since_s=9)]
    assert queue.position_after_eviction(claims, "me") == 2
