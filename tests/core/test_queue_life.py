"""The queue over time: claims come, take their turns in any order, give way, end and die."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jupyter_paddle_gpu.core import queue
from jupyter_paddle_gpu.core.queue import Claim, take_turn, with_takers
from jupyter_paddle_gpu.core.tiers import DEFAULT_LADDER

DEVICES = ["0", "1", "2"]
TIERS = [tier.name for tier in DEFAULT_LADDER]


class Machine(RuleBasedStateMachine):
    """What a book does, without files and processes."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, Claim] = {}
        self.count = 0

    @property
    def claims(self) -> list[Claim]:
        return with_takers(self.written.values())

    def pick(self, data: st.DataObject, claims: list[Claim]) -> Claim:
        return data.draw(st.sampled_from(sorted(claims, key=lambda claim: claim.id)))

    def arrive_as(self, tier: str, gpus: int) -> None:
        rung = DEFAULT_LADDER.get(tier)
        self.count += 1
        name = f"c{self.count:03}"
        self.written[name] = Claim(name, tier, rung.priority, rung.preempts, gpus, float(self.count))

    @precondition(lambda self: len(self.written) < 8)
    @rule(tier=st.sampled_from(TIERS), gpus=st.sampled_from([1, 1, 2, 3]), looks=st.integers(0, 2))
    def arrive(self, tier: str, gpus: int, looks: int) -> None:
        self.arrive_as(tier, gpus)
        for _ in range(looks):
            self.all_look()

    def all_look(self) -> bool:
        return bool([claim for claim in queue.waiting_in_order(self.claims) if self.look_as(claim)])

    @precondition(lambda self: any(not claim.devices for claim in self.written.values()))
    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        self.look_as(self.pick(data, queue.waiting_in_order(self.claims)))

    def look_as(self, claim: Claim) -> bool:
        before = self.claims
        after = take_turn(before, claim.id, DEVICES)
        order = queue.waiting_in_order(before)
        ahead = order[: [one.id for one in order].index(claim.id)]
        if after.devices:
            self.check_grant(after, ahead, before)
        elif set(after.evicts) - set(claim.evicts):
            self.check_need(after, ahead, before)
        self.written[claim.id] = replace(after, evicted_by=None)
        return (after.devices, after.evicts) != (claim.devices, claim.evicts)

    def check_grant(self, claim: Claim, ahead: list[Claim], before: list[Claim]) -> None:
        free = len(DEVICES) - sum(len(one.devices) for one in before)
        assert len(set(claim.devices)) == claim.gpus
        assert free >= claim.gpus + sum(one.gpus for one in ahead), "somebody ahead in the queue was overtaken"

    def check_need(self, claim: Claim, ahead: list[Claim], before: list[Claim]) -> None:
        sizes = {one.id: len(one.devices) for one in before if one.devices}
        given = [one.id for one in before if one.evicted_by is not None]
        new = [victim for victim in claim.evicts if victim not in given]
        free = len(DEVICES) - sum(sizes.values())
        coming = free + sum(sizes[victim] for victim in given + new)
        for victim in new:
            needed = claim.gpus + sum(one.gpus for one in ahead)
            assert coming - sizes[victim] < needed, "somebody was evicted without need"

    @precondition(lambda self: any(claim.evicted_by for claim in self.claims))
    @rule(data=st.data(), returns=st.booleans())
    def give_way(self, data: st.DataObject, returns: bool) -> None:
        victim = self.pick(data, [claim for claim in self.claims if claim.evicted_by])
        del self.written[victim.id]
        if returns:
            self.arrive_as(victim.tier, victim.gpus)

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def end_or_die(self, data: st.DataObject) -> None:
        del self.written[self.pick(data, self.claims).id]

    @invariant()
    def no_device_is_held_twice(self) -> None:
        held = [device for claim in self.written.values() for device in claim.devices]
        assert len(set(held)) == len(held)
        assert set(held) <= set(DEVICES)

    @invariant()
    def only_who_may_displaces_and_only_lower_tiers(self) -> None:
        by_id = {claim.id: claim for claim in self.claims}
        for claim in by_id.values():
            if claim.evicted_by is not None:
                taker = by_id[claim.evicted_by]
                assert taker.preempts
                assert taker.priority > claim.priority
                assert not taker.devices

    def teardown(self) -> None:
        """Whatever happened: when all go on, it comes to rest, and the head of the queue has what it may have."""
        moved = True
        for _ in range(40):
            if not moved:
                break
            moved = self.all_look()
            for victim in [claim for claim in self.claims if claim.evicted_by]:
                del self.written[victim.id]
                moved = True
        assert not moved, "it does not come to rest"
        for head in queue.waiting_in_order(self.claims)[:1]:
            free = len(DEVICES) - sum(len(claim.devices) for claim in self.claims)
            lower = sum(len(claim.devices) for claim in self.claims if claim.priority < head.priority)
            assert free + (lower if head.preempts else 0) < head.gpus


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLife = Machine.TestCase


def test_a_claim_that_holds_or_is_no_tier_to_take_displaces_nobody() -> None:
    victim = Claim("v", "batch", 100_000, True, 1, 0.0, devices=("0",))
    lower = Claim("l", "notebook", 0, True, 1, 0.0, evicts=("v",))
    never = Claim("n", "never", 2_000_000, False, 1, 0.0, evicts=("v",))
    holder = Claim("h", "urgent", 1_000_000, True, 1, 0.0, devices=("1",), evicts=("v",))
    assert all(claim.evicted_by is None for claim in with_takers([victim, lower, never, holder]))
