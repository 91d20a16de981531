"""A room's figures at a moment, and what its visitors then meet."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from greenroom.admission.schedule import Effective, Phase
from greenroom.model.visit import Estimate


class CenterView(msgspec.Struct, frozen=True):
    """One data center, or all unnamed ones together. `age_s`: of its figures; None: never heard.
    `silent`: they are its last report.
    """

    name: str
    active: int
    waiting: int
    last_minute: int
    permits_unused: int
    age_s: float | None = 0.0
    silent: bool = False


class Figures(msgspec.Struct, frozen=True):
    """Of all data centers together; `centers`, this one first, where there are several.
    `last_minute`: admissions of 60 seconds. `estimate`: for a new visitor. `confirms`: new visitors
    must show their ticket before they are admitted.
    """

    active: int = 0
    waiting: int = 0
    last_minute: int = 0
    permits_unused: int = 0
    estimate: Estimate | None = None
    journal_bytes: int = 0
    storage_failed: bool = False
    confirms: bool = False
    centers: tuple[CenterView, ...] = ()

    @property
    def here(self) -> "Figures | CenterView":
        return self.centers[0] if self.centers else self

    def with_others(self, name: str, others: Sequence[CenterView]) -> "Figures":
        """Sums of this data center, called `name`, and of the others."""
        mine = CenterView(name, self.active, self.waiting, self.last_minute, self.permits_unused)
        centers = (mine, *sorted(others, key=lambda one: (not one.name, one.name)))
        return msgspec.structs.replace(
            self,
            active=sum(one.active for one in centers),
            waiting=sum(one.waiting for one in centers),
            last_minute=sum(one.last_minute for one in centers),
            permits_unused=sum(one.permits_unused for one in centers),
            centers=centers,
        )


EMPTY = Figures()
STORAGE_FAILED = Figures(storage_failed=True)


class RoomView(msgspec.Struct, frozen=True):
    """`served`: this process has figures of the room."""

    now: Effective
    figures: Figures = EMPTY
    suspended: bool = False  # the room, or its zone is paused
    served: bool = True

    @property
    def state(self) -> "StateRow":
        return room_state(self)

    @property
    def word(self) -> str:
        return self.state.word

    @property
    def wait_s(self) -> float | None:
        return self.figures.estimate.p50_s if self.figures.estimate else None

    @property
    def event_name(self) -> str:
        return self.now.event.name if self.now.event else ""


class StateRow(NamedTuple):
    """`word` and `reason` are for programs, `title` and `text` the operator's, `public` the
    visitor's. Without a text, figures decide.
    """

    word: str
    applies: Callable[[RoomView], bool]
    label: str
    tone: str
    reason: str = "limits"
    title: str = ""
    text: str = ""
    public: str = ""
    admits: bool = True  # new visitors may be admitted


ROOM_STATES: tuple[StateRow, ...] = (
    StateRow(
        "suspended",
        lambda it: it.suspended,
        "Suspended",
        "gray",
        title="The room is suspended",
        text="Every visitor goes straight to your application, and nothing is counted.",
        public="Open",
    ),
    StateRow(
        "storage",
        lambda it: it.figures.storage_failed,
        "Admissions stopped: storage failed",
        "red",
        "storage",
        "Admissions stopped: storage failed",
        "No visitor is let in: greenroom cannot write down who is inside. Visitors keep their"
        " places. The log says what failed.",
        "Entry is paused; places in line are kept",
        admits=False,
    ),
    StateRow(
        "holding",
        lambda it: it.now.room.queue_all,
        "Holding all new visitors",
        "yellow",
        "queue_all",
        "You hold all new visitors",
        "No new visitor is let in, however much room there is, because all new visitors are held."
        " Active visitors stay.",
        "All new visitors wait at the moment",
        admits=False,
    ),
    StateRow(
        "prequeue",
        lambda it: it.now.phase is Phase.PREQUEUE,
        "Pre-queue",
        "blue",
        "prequeue",
        "Pre-queue",
        "No visitor is let in before the event {event} starts.",
        "Lets visitors in from {opens}",
        admits=False,
    ),
    StateRow(
        "rejecting",
        lambda it: it.now.turns_away,
        "Rejecting new visitors",
        "red",
        "reject",
        "The room rejects new visitors",
        "No new visitor is let in: they are told that it is closed. Active visitors stay.",
        "Closed to new visitors at the moment",
        admits=False,
    ),
    StateRow(
        "origin",
        lambda it: it.now.origin_down,
        "On hold – site is down",
        "red",
        "origin",
        "The origin is unhealthy",
        "No new visitor is let in until the health checks find the origin healthy again. Places"
        " and sessions are kept.",
        "All new visitors wait at the moment",
        admits=False,
    ),
    StateRow(
        "slow",
        lambda it: it.now.origin_slow,
        "On hold – site is failing",
        "red",
        "origin_slow",
        "The site is too slow, or fails",
        "No new visitor is let in until the site answers in time again. Places and sessions are"
        " kept.",
        "The site is recovering; places in line are kept",
        admits=False,
    ),
    StateRow(
        "passthrough",
        lambda it: it.now.holds_nobody,
        "Letting everyone through",
        "gray",
        title="Everyone passes",
        text="Every visitor is let in and counted; the limits do not apply.",
        public="Open",
    ),
    StateRow("queueing", lambda it: it.figures.waiting > 0, "Queueing", "yellow"),
    StateRow("open", lambda _: True, "Open", "green", public="Open"),
)
"""The first that applies counts: what stops admissions stands before what slows them. `queue_all`
stands before a pre-queue because it goes on when the event starts.
"""

FAULTS = ("storage", "origin", "slow")


def room_state(view: RoomView) -> StateRow:
    return next(row for row in ROOM_STATES if row.applies(view))
