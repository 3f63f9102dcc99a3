from __future__ import annotations

import pytest

from jupyter_paddle_gpu.core.session import ENDED, TRANSITIONS, Event, IllegalTransition, State, advance


def life(*events: Event) -> State:
    state = State.REQUESTED
    for event in events:
        state = advance(state, event)
    return state


def test_an_eviction_leads_back_to_running() -> None:
    there_and_back = [Event.NOTICE, Event.GONE, Event.SCHEDULED, Event.KERNEL_READY]
    assert life(Event.SCHEDULED, Event.KERNEL_READY, *there_and_back, *there_and_back) is State.RUNNING


def test_a_second_notice_and_one_while_restoring_are_served() -> None:
    assert life(Event.SCHEDULED, Event.NOTICE, Event.NOTICE) is State.EVICTING
    assert life(Event.SCHEDULED, Event.GONE, Event.SCHEDULED, Event.NOTICE) is State.EVICTING


def test_a_kernel_that_ends_can_start_again_on_its_devices() -> None:
    assert life(Event.SCHEDULED, Event.KERNEL_READY, Event.KERNEL_GONE) is State.STARTING
    assert life(Event.SCHEDULED, Event.NOTICE, Event.KERNEL_GONE) is State.EVICTING


@pytest.mark.parametrize("state", [state for state in State if state not in ENDED])
def test_every_living_session_can_be_stopped(state: State) -> None:
    assert advance(state, Event.STOP) is State.STOPPED


@pytest.mark.parametrize("state", sorted(ENDED))
@pytest.mark.parametrize("event", list(Event))
def test_nothing_happens_to_an_ended_session(state: State, event: Event) -> None:
    with pytest.raises(IllegalTransition, match=event.value):
        advance(state, event)


def test_every_state_is_reached_and_every_living_one_is_left() -> None:
    assert {state for _, state in TRANSITIONS.items()} | {State.REQUESTED} >= set(State)
    assert {state for (state, _event) in TRANSITIONS} == set(State) - ENDED
