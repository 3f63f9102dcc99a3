"""Ranks agree on one place: the foremost, where all stand, and only then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_paddle_gpu.core.notice import Cause
from jupyter_paddle_gpu.core.ranks import (
    Answer,
    Answering,
    Event,
    Place,
    Stage,
    World,
    advance,
    ends,
    meeting_place,
    most_urgent,
    world_of,
)


@pytest.mark.parametrize(
    ("environ", "world"),
    [
        ({}, World(0, 1)),
        ({"PADDLE_TRAINER_ID": "3", "PADDLE_TRAINERS_NUM": "4"}, World(3, 4)),
        ({"PADDLE_TRAINER_ID": "4", "PADDLE_TRAINERS_NUM": "4"}, World(0, 1)),
        ({"PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "many"}, World(0, 1)),
    ],
)
def test_a_process_knows_its_rank(environ: dict[str, str], world: World) -> None:
    assert world_of(environ) == world


def test_a_turn_is_written_only_after_all_stand() -> None:
    stage = Stage.IDLE
    for event in (Event.CALL, Event.ALL_HEARD, Event.ALL_STAND, Event.FIRST_WRITTEN, Event.ALL_WRITTEN):
        stage = advance(stage, event)
    assert stage is Stage.SAVED
    with pytest.raises(ValueError, match="gathering knows no"):
        advance(Stage.GATHERING, Event.FIRST_WRITTEN)
    with pytest.raises(ValueError, match="saved knows no"):
        advance(Stage.SAVED, Event.FAULT)


def test_a_notice_is_more_urgent_than_what_somebody_asks_for() -> None:
    assert most_urgent([Cause.PERIODIC, Cause.SIGTERM, Cause.MANUAL]) is Cause.SIGTERM
    assert most_urgent([Cause.PERIODIC, Cause.MANUAL]) is Cause.MANUAL
    assert not ends(Cause.PERIODIC)


PLACES = st.builds(Place, st.integers(0, 2), st.integers(0, 3))
ANSWERS = st.builds(
    Answer,
    nonce=st.just("n"),
    home=st.just(""),
    pid=st.just(1),
    turn=st.integers(1, 2),
    state=st.sampled_from(Answering),
    place=PLACES,
)


@given(own=PLACES, others=st.dictionaries(st.integers(1, 3), ANSWERS), size=st.integers(2, 4))
def test_nobody_agrees_while_somebody_stands_elsewhere(own: Place, others: dict[int, Answer], size: int) -> None:
    others = {rank: answer for rank, answer in others.items() if rank < size}
    target, agreed = meeting_place(own, others, 2, size)
    assert target >= own
    if agreed:
        assert len(others) == size - 1
        assert all(
            (answer.turn, answer.state, answer.place) == (2, Answering.STANDING, own) for answer in others.values()
        )
