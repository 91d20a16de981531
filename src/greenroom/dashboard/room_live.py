"""How a room is doing, in words: one table, the first row that applies counts."""

from collections.abc import Callable
from math import isfinite
from typing import NamedTuple

from greenroom.admission.schedule import Effective, Phase, effective
from greenroom.configuration.state import Figures, RoomState
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.web.pages.rendering import duration


class RoomLive(NamedTuple):
    """A word for programs, one for people, a tone (red, yellow, blue, green, gray), and the
    settings in force.
    """

    word: str
    label: str
    tone: str
    now: Effective
    figures: Figures
    served: bool

    @property
    def wait_s(self) -> float | None:
        """For a visitor who joins now; None: unknown."""
        return self.figures.estimate.p50_s if self.figures.estimate else None

    @property
    def wait_words(self) -> str:
        known = self.wait_s is not None and isfinite(self.wait_s)
        return (
            f"The next one to join waits about {duration(self.wait_s)}."
            if known
            else "How long the next one to join waits is not known yet."
        )


LiveFacts = tuple[Effective, Figures, bool]

STATES: tuple[tuple[str, str, str, Callable[[LiveFacts], bool]], ...] = (
    ("suspended", "Suspended", "gray", lambda it: it[2]),
    ("storage", "Admissions stopped: storage failed", "red", lambda it: it[1].storage_failed),
    ("prequeue", "Pre-queue", "blue", lambda it: it[0].phase is Phase.PREQUEUE),
    ("holding", "Holding all new visitors", "yellow", lambda it: it[0].room.queue_all),
    ("rejecting", "Rejecting new visitors", "red", lambda it: it[0].turns_away),
    ("origin", "Holding: the origin is unhealthy", "red", lambda it: it[0].origin_down),
    ("queueing", "Queueing", "yellow", lambda it: it[1].waiting > 0),
    ("passthrough", "Passing everyone", "gray", lambda it: it[0].holds_nobody),
    ("open", "Not queueing", "green", lambda _: True),
)
"""(word, label, tone, whether it applies). What stops admissions stands before what merely slows
them.
"""

FAULT_STATES = ("storage", "origin")
"""A fault keeps visitors out, and no one has chosen so."""


def urgency(live: RoomLive) -> tuple[int, int, int]:
    """Sorts rooms with a fault first, then those with a line, by wait and then by line.

    Waits (in minutes) and lines count by their power of two, so that rooms do not change places
    with every refresh.
    """
    waiting = 0 if live.word == "suspended" else live.figures.waiting
    rank = 0 if live.word in FAULT_STATES else 1 if waiting else 2
    least_s = 60 * waiting / live.now.room.new_users_per_minute
    wait_s = live.wait_s if live.wait_s is not None and isfinite(live.wait_s) else least_s
    return rank, -int(wait_s / 60).bit_length() if waiting else 0, -waiting.bit_length()


def room_live(
    known: Configuration, entry: Entry[Room], state: RoomState | None, now_ms: int
) -> RoomLive:
    """A room that this process does not serve (yet) is empty."""
    now = (
        state.now
        if state and state.now
        else effective(entry.record, (event.record for event in known.events.of(entry.id)), now_ms)
    )
    figures = state.figures if state else Figures()
    zone = known.zones.get(entry.parent)
    suspended = entry.record.suspended or bool(zone and zone.record.paused)
    word, label, tone, _ = next(row for row in STATES if row[3]((now, figures, suspended)))
    return RoomLive(word, label, tone, now, figures, state is not None)
