"""The description of one run."""

from dataclasses import dataclass, field

from greenroom.model.room import Room

START_MS = 1_750_000_000_000

OPERATOR_ACTIONS = {
    "capacity": "total_active_users is multiplied by `amount` / 100",
    "rate": "new_users_per_minute is multiplied by `amount` / 100",
    "passthrough": "the queueing method is passthrough: all visitors are let in and counted",
    "reject": "the queueing method is reject: new visitors are turned away",
    "queue all": "queue_all holds all new visitors",
    "suspended": "the room is suspended: visitors reach the origin, and nothing is recorded",
    "session duration": "session_duration is `amount` minutes",
    "renewal": "disable_session_renewal is the other way round",
    "confirm newcomers": "confirm_newcomers is true (`amount` 1) or false (0)",
    "pacing": "pace_admissions is the other way round",
    "provisional sessions": "provisional_sessions is the other way round",
    "let in": "both limits are higher by `amount`: more visitors are let in now",
    "end sessions": "all sessions are ended",
    "pre-queue": (
        "an event is about to start, and holds all new visitors; with `amount` 1 their places are"
        " drawn when it starts"
    ),
    "removed": (
        "as outage, or with `amount` 1 as stop, and the data centers are taken off the list; they"
        " are added with empty ledgers, or, from an odd second on, as they are behind their fence"
    ),
}
"""Operator actions; what can be undone is undone at the end."""

FAULTS = {
    "partition": "the data center and the coordinator cannot reach each other",
    "outage": (
        "the data center is down; its visitors are sent to others, and its ledger is intact"
        " afterwards"
    ),
    "stop": "as outage, but the data center stops in order, and says so",
    "crash": "the ledger is lost; it starts again empty, in a new epoch",
    "old disk": "the ledger is restored from what was on disk some time ago, in a new epoch",
    "coordinator down": "the coordinator does not answer",
    "coordinator loss": "the coordinator loses its state and collects it again",
    "loss": "so many per cent of all messages are lost",
    "churn": "workers keep stopping and starting",
    "limits": "both limits are multiplied by `amount` / 100, at once",
    "method": "the queueing method changes from fifo to random, or from random to fifo",
    "flood": (
        "`amount` requests without cookies a second ask for a page at these data centers, and never"
        " come back"
    ),
    "provisional flood": (
        "`amount` requests a second that cannot wait come without cookies to these data centers;"
        " few tickets come back"
    ),
    "clock step": (
        "the clock of a data center's server is stepped by `amount` seconds, and back at the end"
    ),
    "origin down": "the origin answers no document, and visitors inside try again",
    "follow": (
        "the room follows an origin that is at its knee with `amount` per cent of"
        " total_active_users inside"
    ),
    "pushes": (
        "what the origin answers is pushed, every five seconds; `amount` per cent each of the pushes"
        " are lost, late, repeated, and sent again out of order"
    ),
    **OPERATOR_ACTIONS,
}


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    at_s: float
    until_s: float = 0.0
    centers: tuple[int, ...] = ()
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Behaviour:
    visit_s: float = 60.0
    """Mean time from entering to the last page."""
    heavy_tail: bool = False
    """Pareto (few visits are very long) instead of exponential."""
    page_gap_s: float = 10.0
    parts: bool = False
    """Pages have parts in the room, such as scripts, that bring the ticket back within seconds."""
    leaving: float = 0.0
    """Share of visitors whose session is ended when they are done."""
    patience_s: float = 0.0
    """Mean time until a waiting visitor gives up; 0 is never."""
    once: float = 0.0
    """Share of visitors who never come back to the waiting page: no cookies, or no interest."""
    pausing: float = 0.0
    """Share of waiting visitors who miss a minute and come back."""
    reloading: float = 0.0
    """Share of waiting visitors who try ten times as often as told."""
    sleeping: float = 0.0
    """Share of waiting visitors who try only every `sleep_s`, because their phone sleeps."""
    sleep_s: tuple[int, int] = (45, 180)
    """Shortest and longest."""
    dropping: float = 0.0
    absent: float = 0.0
    """Share of visitors with a wait over ABSENT_FROM_S who close the page and return between the lower
    quartile and RETURNS_MS after the upper one.
    """
    moving: float = 0.0
    """Share of page views and tries that reach another data center than the one before."""


@dataclass(frozen=True, slots=True)
class NetworkProfile:
    """One way."""

    least_ms: int = 5
    most_ms: int = 75
    """Each data center has its own distance up to this."""
    jitter: float = 0.3
    """Largest extra delay of a message, relative."""
    loss: float = 0.0
    twice: float = 0.0
    """Share of messages that arrive again up to ten seconds later, so out of order."""
    skew_ms: int = 0
    """Each clock is off by up to this."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`arrivals`: (milliseconds from the start, data center), in order."""

    name: str
    room: Room
    centers: int
    arrivals: list[tuple[int, int]]
    lasts_s: float
    behaviour: Behaviour = field(default_factory=Behaviour)
    network: NetworkProfile = field(default_factory=NetworkProfile)
    faults: tuple[Fault, ...] = ()
    fence_s: int = 0
    """A data center without contact for this long stops by itself; `0` disables it."""
    workers: int = 4
    """Matters only to the published allocations."""
    laws_every_s: int = 60
    """One costs about a try of everybody present."""
    ends_with_crowd: bool = False
    """Ends early when all visitors have arrived and none waits."""
