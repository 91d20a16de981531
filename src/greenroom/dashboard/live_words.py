"""Sentences for the live page: why visitors are admitted or not, and what other limits would
change.
"""

from typing import NamedTuple

from greenroom.capacity.room_capacity import CapacityState
from greenroom.decision.room_view import RoomView
from greenroom.model.fields import plural
from greenroom.web.pages.rendering import duration, grouped

FULL = 0.97
"""Counts as full: figures of several data centers are seconds apart."""

MINUTES_MAX = 24 * 60


class LimitWords(NamedTuple):
    """`binds`: active, rate, both, room, held (nothing to do with limits) or off."""

    binds: str
    title: str
    text: str


NOT_SERVED = LimitWords(
    "off", "No gateway here serves this room", "There are no live figures in this process."
)


def _visitors(number: int, noun: str = "visitor") -> str:
    return f"{grouped(number)} {plural(number, noun)}"


def _limits(live: RoomView) -> LimitWords:
    figures, room = live.figures, live.now.room
    limit = live.now.active_limit
    active = figures.active >= FULL * limit
    rate = figures.last_minute >= FULL * room.new_users_per_minute
    places, entries = (
        max(0, limit - figures.active),
        max(0, room.new_users_per_minute - figures.last_minute),
    )
    if active and rate:
        return LimitWords(
            "both",
            "Both limits are reached",
            "Your site is full, and as many visitors as allowed came in during the last minute.",
        )
    if figures.active > limit:
        ending = grouped(figures.active - limit + 1)
        return LimitWords(
            "active",
            "More are active than the limit",
            f"The next visitor is let in when {ending} sessions have ended.",
        )
    if active and limit < room.total_active_users:
        return LimitWords(
            "active",
            "The current limit is reached",
            f"At most {_visitors(limit)} may be active now: the next one is let in when a session"
            " ends, or when the limit rises another step.",
        )
    if active:
        return LimitWords(
            "active",
            "Your site is full",
            "The limit of active visitors is reached: the next visitor is let in when a session"
            " ends.",
        )
    if rate:
        free = f"{plural(places, 'is', 'are')} {grouped(places)} free {plural(places, 'place')}"
        text = f"The next visitors are let in as the minute moves on; there {free}."
        return LimitWords("rate", "The limit of new visitors per minute is reached", text)
    now = min(places, entries)
    if figures.waiting:
        return LimitWords(
            "room",
            "Letting people in",
            f"{_visitors(now)} can come in now: each does when the waiting page refreshes next.",
        )
    more = _visitors(now, "more visitor")
    first = "the limit of active visitors" if places <= entries else "the limit per minute"
    return LimitWords(
        "room", "No limit is reached", f"{more} can come in now, before {first} is reached."
    )


def limit_words(live: RoomView) -> LimitWords:
    state = live.state
    if not live.served and state.word != "suspended":
        return NOT_SERVED
    if not state.title:
        return _limits(live)
    text = state.text.format(event=live.event_name)
    return LimitWords("off" if state.admits else "held", state.title, text)


CAPACITY_WORDS = {
    "observe": "Observing: greenroom would set {}",
    "suggest": "greenroom finds that the site takes {}",
    "follow": "Following the origin: it takes {}",
}


STOPPED_WORDS = {
    "observe": "Observing: greenroom would stop admissions",
    "follow": "Following the origin: no one is let in until it recovers",
}


def capacity_words(found: CapacityState, now_ms: int) -> str:
    if found.mode == "fixed":
        return "The origin cannot be followed"
    if found.unmeasured(now_ms):
        return f"The origin is not measured; the limit stays at {grouped(found.sessions)}"
    if found.stopped and found.mode in STOPPED_WORDS:
        return STOPPED_WORDS[found.mode]
    words = CAPACITY_WORDS[found.mode].format(_visitors(found.sessions, "active visitor"))
    fills = found.mode == "follow" and found.limit < found.sessions
    return f"{words}, and fills gradually: up to {grouped(found.limit)} for now" if fills else words


class LimitPlan(NamedTuple):
    active: int
    rate: int


def clearing_minutes(live: RoomView, plan: LimitPlan) -> int | None:
    """None: more than a day. Assumes that sessions keep ending at the present rate: in a full room
    as many as were admitted during the last minute, else at least as many as the session duration
    ends.
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


def effect_of(live: RoomView, plan: LimitPlan) -> list[str]:
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
        sooner = _minutes(before) != _minutes(after)
        said.append(
            "If no more people come and visits stay as long as now, the line of"
            f" {grouped(figures.waiting)} is empty after {_minutes(after)}"
            + (f" instead of {_minutes(before)}." if sooner else ", as with the current limits.")
        )
    else:
        said.append("No one waits at the moment.")
    if plan.active > now.active or plan.rate > now.rate:
        said.append("Make sure your site can handle this load.")
    return said


def _minutes(minutes: int | None) -> str:
    return (
        "more than a day"
        if minutes is None
        else "less than a minute"
        if not minutes
        else f"about {duration(minutes * 60)}"
    )
