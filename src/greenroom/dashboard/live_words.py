"""Why visitors are admitted or not, and what other limits would change: sentences for the live
page.
"""

from collections.abc import Callable
from typing import NamedTuple

from greenroom.admission.schedule import Phase
from greenroom.dashboard.room_live import RoomLive
from greenroom.web.pages.rendering import duration, grouped

FULL = 0.97
"""A limit counts as reached from this share on: figures of several data centers are seconds apart.
"""

MINUTES_MAX = 24 * 60
"""Longer lines are not worth computing."""


class LimitWords(NamedTuple):
    """`binds`: active, rate, both, room, held (nothing to do with limits) or off; then title and
    sentence.
    """

    binds: str
    title: str
    text: str


LiveSentence = Callable[[RoomLive], LimitWords | None]


def _suspended(live: RoomLive) -> LimitWords | None:
    if live.word != "suspended":
        return None
    return LimitWords(
        "off",
        "The room is suspended",
        "Every visitor goes straight to your application, and nothing is counted.",
    )


def _not_served(live: RoomLive) -> LimitWords | None:
    return (
        None
        if live.served
        else LimitWords(
            "off", "No gateway here serves this room", "There are no live figures in this process."
        )
    )


def _storage(live: RoomLive) -> LimitWords | None:
    text = (
        "No visitor is let in: greenroom cannot write down who is inside. Visitors keep their"
        " places. The log says what failed."
    )
    return (
        LimitWords("held", "Admissions stopped: storage failed", text)
        if live.figures.storage_failed
        else None
    )


def _prequeue(live: RoomLive) -> LimitWords | None:
    if live.now.phase is not Phase.PREQUEUE or live.now.event is None:
        return None
    return LimitWords(
        "held", "Pre-queue", f"No visitor is let in before the event {live.now.event.name} starts."
    )


def _holding(live: RoomLive) -> LimitWords | None:
    text = (
        "No new visitor is let in, however much room there is, because all new visitors are held."
        " Active visitors stay."
    )
    return (
        LimitWords("held", "You hold all new visitors", text) if live.now.room.queue_all else None
    )


def _rejecting(live: RoomLive) -> LimitWords | None:
    text = "No new visitor is let in: they are told that it is closed. Active visitors stay."
    return (
        LimitWords("held", "The room rejects new visitors", text) if live.now.turns_away else None
    )


def _origin(live: RoomLive) -> LimitWords | None:
    text = (
        "No new visitor is let in until the health checks find the origin healthy again. Places and"
        " sessions are kept."
    )
    return LimitWords("held", "The origin is unhealthy", text) if live.now.origin_down else None


def _passing(live: RoomLive) -> LimitWords | None:
    text = "Every visitor is let in and counted; the limits do not apply."
    return LimitWords("off", "Everyone passes", text) if live.now.holds_nobody else None


def _some(number: int, one: str, several: str) -> str:
    return one if number == 1 else several.format(grouped(number))


def _limits(live: RoomLive) -> LimitWords:
    figures, room = live.figures, live.now.room
    active = figures.active >= FULL * room.total_active_users
    rate = figures.last_minute >= FULL * room.new_users_per_minute
    places, entries = (
        max(0, room.total_active_users - figures.active),
        max(0, room.new_users_per_minute - figures.last_minute),
    )
    if active and rate:
        return LimitWords(
            "both",
            "Both limits are reached",
            "The application is full, and as many as allowed came in during the last minute.",
        )
    if active:
        return LimitWords(
            "active",
            "The application is full",
            "The limit of active visitors is reached: the next visitor is let in when a session"
            " ends.",
        )
    if rate:
        free = _some(places, "is 1 free place", "are {} free places")
        text = f"The next visitors are let in as the minute moves on; there {free}."
        return LimitWords("rate", "The limit of new visitors per minute is reached", text)
    if figures.waiting:
        text = "Visitors are being let in: each comes in when the waiting page refreshes next."
        return LimitWords(
            "room",
            "There is room",
            f"{text} {_some(places, '1 place is free', '{} places are free')}.",
        )
    more = _some(places, "1 more visitor", "{} more visitors")
    text = (
        f"{more} can be active at once, and {grouped(entries)} more may come in during this minute."
    )
    return LimitWords("room", "No limit is reached", text)


REASONS: tuple[LiveSentence, ...] = (
    _suspended,
    _not_served,
    _storage,
    _rejecting,
    _prequeue,
    _holding,
    _origin,
    _passing,
)
"""In greenroom's own order; the first that applies counts, else the limits."""


def limit_words(live: RoomLive) -> LimitWords:
    return next(
        (found for reason in REASONS if (found := reason(live)) is not None), None
    ) or _limits(live)


class LimitPlan(NamedTuple):
    active: int
    rate: int


def clearing_minutes(live: RoomLive, plan: LimitPlan) -> int | None:
    """Minutes until all who wait now are admitted, if no more come; None: more than a day.

    Sessions end as fast as now: in a full room as many as were admitted during the last minute,
    otherwise at least as many as the session duration ends; twice the active visitors end twice the
    sessions.
    """
    room, figures = live.now.room, live.figures
    ending = max(
        figures.active / room.session_duration,
        figures.last_minute if figures.active >= FULL * room.total_active_users else 0,
    )
    share = ending / figures.active if figures.active else 1 / room.session_duration
    inside, left = float(figures.active), float(figures.waiting)
    for minute in range(MINUTES_MAX):
        if left < 1:
            return minute
        inside -= inside * share
        let_in = max(0.0, min(plan.rate, plan.active - inside, left))
        inside, left = inside + let_in, left - let_in
    return None


def effect_of(live: RoomLive, plan: LimitPlan) -> list[str]:
    room, figures = live.now.room, live.figures
    now = LimitPlan(room.total_active_users, room.new_users_per_minute)
    said = []
    if plan.active > now.active:
        at_once = min(plan.active - now.active, figures.waiting, plan.rate)
        text = (
            f"Up to {grouped(at_once)} of those who wait come in within the next minute."
            if at_once
            else "More room for new visitors."
        )
        said.append(text)
    if plan.active < figures.active:
        said.append(
            f"Those who are inside stay. No one is let in until fewer than {grouped(plan.active)}"
            " are active."
        )
    if figures.waiting:
        before, after = clearing_minutes(live, now), clearing_minutes(live, plan)
        said.append(
            "If no more people come and visits stay as long as now, the line of"
            f" {grouped(figures.waiting)} is empty after {_minutes(after)} instead of"
            f" {_minutes(before)}."
        )
    else:
        said.append("No one waits at the moment.")
    if plan.active > now.active or plan.rate > now.rate:
        said.append("Make sure that your application can serve so many: greenroom does not know.")
    return said


def _minutes(minutes: int | None) -> str:
    return (
        "more than a day"
        if minutes is None
        else "less than a minute"
        if not minutes
        else f"about {duration(minutes * 60)}"
    )
