"""The session's life: states, events and the one table of transitions."""

from __future__ import annotations

from enum import Enum


class State(str, Enum):
    """Where a session is. The outcome of a save is data on the session, not a state."""

    REQUESTED = "requested"  # asked for, no devices yet
    STARTING = "starting"  # has its devices, the kernel is not ready
    RUNNING = "running"
    EVICTING = "evicting"  # a notice has come; the state is being saved
    WAITING = "waiting"  # lost its devices, stands in the queue
    RESTORING = "restoring"  # has devices again, the kernel is not ready
    STOPPED = "stopped"
    FAILED = "failed"


class Event(str, Enum):
    """What happens to a session."""

    SCHEDULED = "scheduled"  # devices are ours, the agent starts
    KERNEL_READY = "kernel-ready"
    KERNEL_GONE = "kernel-gone"  # the kernel process ended, its devices are still ours: it can start again in place
    NOTICE = "notice"
    GONE = "gone"  # agent (or Pod) has ended
    REFUSED = "refused"  # the placement will never give what was asked
    RESTORE_FAILED = "restore-failed"
    STOP = "stop"


ENDED = frozenset({State.STOPPED, State.FAILED})

TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.REQUESTED, Event.SCHEDULED): State.STARTING,
    (State.REQUESTED, Event.REFUSED): State.FAILED,
    (State.STARTING, Event.KERNEL_READY): State.RUNNING,
    (State.STARTING, Event.KERNEL_GONE): State.STARTING,
    (State.STARTING, Event.NOTICE): State.EVICTING,
    (State.STARTING, Event.GONE): State.WAITING,
    (State.RUNNING, Event.KERNEL_GONE): State.STARTING,
    (State.RUNNING, Event.NOTICE): State.EVICTING,
    (State.RUNNING, Event.GONE): State.WAITING,
    (State.EVICTING, Event.KERNEL_GONE): State.EVICTING,
    (State.EVICTING, Event.NOTICE): State.EVICTING,
    (State.EVICTING, Event.GONE): State.WAITING,
    (State.WAITING, Event.SCHEDULED): State.RESTORING,
    (State.WAITING, Event.REFUSED): State.FAILED,
    (State.RESTORING, Event.KERNEL_READY): State.RUNNING,
    (State.RESTORING, Event.RESTORE_FAILED): State.FAILED,
    (State.RESTORING, Event.KERNEL_GONE): State.STARTING,
    (State.RESTORING, Event.NOTICE): State.EVICTING,
    (State.RESTORING, Event.GONE): State.WAITING,
} | {(state, Event.STOP): State.STOPPED for state in State if state not in ENDED}


class IllegalTransition(RuntimeError):
    """An event that cannot happen in this state: a fault of ours, not of the user's."""


def advance(state: State, event: Event) -> State:
    """Return the state after ``event``. Raises IllegalTransition where the table has no entry."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"{event.value} cannot happen to a session that is {state.value}") from None
