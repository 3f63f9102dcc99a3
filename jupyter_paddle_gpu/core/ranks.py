"""Several ranks of one training: who they are, what they tell one another, and how they agree on one place.

Rank 0 leads. A turn is one snapshot: rank 0 calls, all hear it, each stands still at its earliest place, those behind
go on to the place of the foremost, all write there, and rank 0 makes it a snapshot. Only rank 0 decides; the others
answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from jupyter_paddle_gpu.core.notice import Cause

ENV_RANK, ENV_SIZE = "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"  # set by paddle.distributed.launch and spawn
_ASKED = {Cause.MANUAL, Cause.PERIODIC, Cause.DRILL, Cause.SHUTDOWN}  # the training goes on after these


@dataclass(frozen=True)
class World:
    """This process is rank ``rank``, from 0, of ``size``."""

    rank: int = 0
    size: int = 1

    @property
    def main(self) -> bool:
        """Whether this rank leads, and speaks to people."""
        return self.rank == 0


def world_of(environ: Mapping[str, str]) -> World:
    """Return who this process is; one that is alone, or is told nonsense, is rank 0 of 1."""
    rank, size = environ.get(ENV_RANK, ""), environ.get(ENV_SIZE, "")
    if not rank.isdecimal() or not size.isdecimal() or int(rank) >= int(size):
        return World()
    return World(int(rank), int(size))


@dataclass(frozen=True, order=True)
class Place:
    """Where a training stands: in its ``loop``-th loop of guard.steps, before ``step``. Places have an order."""

    loop: int = 0
    step: int = 0


class Stage(str, Enum):
    """Where a turn is, as rank 0 tells it."""

    IDLE = "idle"
    CALLED = "called"  # who hears it says so
    GATHERING = "gathering"  # all have heard: they come to stand still
    AGREED = "agreed"  # all stand at one place
    WRITING = "writing"  # rank 0's part is written: the others write what differs from it
    SAVED = "saved"
    FAILED = "failed"


class Event(str, Enum):
    """What moves a turn on."""

    CALL = "call"
    ALL_HEARD = "all heard"
    ALL_STAND = "all stand"
    FIRST_WRITTEN = "first written"
    ALL_WRITTEN = "all written"
    FAULT = "fault"


_TURN = {
    (Stage.IDLE, Event.CALL): Stage.CALLED,
    (Stage.SAVED, Event.CALL): Stage.CALLED,
    (Stage.FAILED, Event.CALL): Stage.CALLED,
    (Stage.CALLED, Event.ALL_HEARD): Stage.GATHERING,
    (Stage.GATHERING, Event.ALL_STAND): Stage.AGREED,
    (Stage.AGREED, Event.FIRST_WRITTEN): Stage.WRITING,
    (Stage.WRITING, Event.ALL_WRITTEN): Stage.SAVED,
    **{(stage, Event.FAULT): Stage.FAILED for stage in (Stage.CALLED, Stage.GATHERING, Stage.AGREED, Stage.WRITING)},
}


def advance(stage: Stage, event: Event) -> Stage:
    """Return the next stage of a turn. Raises ValueError for what cannot happen."""
    try:
        return _TURN[stage, event]
    except KeyError:
        raise ValueError(f"a turn that is {stage.value} knows no “{event.value}”") from None


class Answering(str, Enum):
    """Where a rank is in a turn, as it tells itself."""

    IDLE = "idle"
    HEARD = "heard"
    STANDING = "standing"
    WRITTEN = "written"
    ENDED = "ended"  # it knows how the turn ended
    FAULT = "fault"


@dataclass(frozen=True)
class Part:
    """What a rank has written: the bytes of its two files, the CRC-32 of its contents, and what is not exact in it."""

    tensors_nbytes: int
    contents_nbytes: int
    contents_crc32: int
    inexact: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wish:
    """A rank would like a snapshot; ``number`` counts its wishes, ``remaining_s`` is the time it has left (0: any)."""

    number: int
    cause: Cause
    remaining_s: float = 0.0


@dataclass(frozen=True)
class Call:
    """Rank 0's note. ``ranks``: the others' nonces, by rank: whoever finds its own knows that this is of its run.

    ``place`` is the foremost so far; ``draft`` the directory's name and ``contents_*`` rank 0's contents, once WRITING;
    ``restored``: the snapshot that all go on from (empty: none; None: not chosen yet). ``beat`` moves while it works.
    """

    nonce: str
    home: str
    pid: int
    ranks: Mapping[str, str] = field(default_factory=dict)
    turn: int = 0
    stage: Stage = Stage.IDLE
    cause: Cause = Cause.MANUAL
    patience_s: float = 0.0
    remaining_s: float = 0.0
    place: Place = field(default_factory=Place)
    draft: str = ""
    contents_nbytes: int = 0
    contents_crc32: int = 0
    fault: str = ""
    restored: str | None = None
    beat: int = 0


@dataclass(frozen=True)
class Answer:
    """The note of any other rank. ``call`` is the nonce of the rank 0 that it follows."""

    nonce: str
    home: str
    pid: int
    call: str = ""
    turn: int = 0
    state: Answering = Answering.IDLE
    place: Place = field(default_factory=Place)
    part: Part | None = None
    wish: Wish | None = None
    fault: str = ""
    beat: int = 0


@dataclass(frozen=True)
class Terms:
    """Why a turn is made, how long the ranks may take to meet, and how long everything (0: as long as they work)."""

    cause: Cause
    patience_s: float
    remaining_s: float = 0.0


def ends(cause: Cause) -> bool:
    """Whether the training ends after a snapshot of this cause."""
    return cause not in _ASKED


def most_urgent(causes: Iterable[Cause]) -> Cause:
    """Return the cause that a turn for all of these has."""
    return min(causes, key=lambda cause: (not ends(cause), cause is Cause.PERIODIC))


def meeting_place(own: Place, others: Mapping[int, Answer], turn: int, size: int) -> tuple[Place, bool]:
    """Return the foremost place where a rank stands or will come to stand, and whether all ``size`` stand there."""
    answers = [answer for answer in others.values() if answer.turn == turn]
    target = max([own, *(answer.place for answer in answers)])
    standing = [answer.place for answer in answers if answer.state is Answering.STANDING]
    return target, len(standing) == size - 1 and all(place == target for place in (own, *standing))


def gather_s(remaining_s: float, save_s: float | None) -> float:
    """Return how long ranks with a notice may take to meet: there is no snapshot at all without that.

    All that is left once the save (known) is paid for twice; half of everything while its cost is unknown.
    """
    return max(0.0, 0.5 * remaining_s if save_s is None else remaining_s - 2 * save_s)
