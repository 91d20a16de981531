"""What the settings of a room mean, in sentences that need no manual."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from greenroom.dashboard.rendering import duration

CROWD, CROWD_MINUTES = 10_000, 10
"""The example: so many people arriving evenly within so many minutes."""

MINUTES_MAX = 60 * 24 * 7
"""Waits longer than a week are not worth computing."""


def last_wait_minutes(active: int, rate: int, session_minutes: int, people: int = CROWD, within: int = CROWD_MINUTES) -> int | None:
    """Minutes that the last of these people waits at least, when every visit is as short as can be; None: longer than a week.

    Minute by minute: a visitor is let in while fewer than `active` are inside and fewer than `rate` came in this minute, and counts
    for `session_minutes`.
    """
    inside, leaving = 0, deque([0] * session_minutes)
    let_in = 0
    for minute in range(MINUTES_MAX):
        inside -= leaving.popleft()
        arrived = people * min(minute + 1, within) // within
        now = max(0, min(rate, active - inside, arrived - let_in))
        inside += now
        leaving.append(now)
        let_in += now
        if let_in >= people:
            return max(0, minute + 1 - within)
    return None


def meaning(room: Mapping[str, Any], number: Callable[[float], str]) -> list[str]:
    """Sentences about a room as the API shows it; `number` writes numbers as the viewer reads them."""
    active, rate, minutes = room["total_active_users"], room["new_users_per_minute"], room["session_duration"]
    if room.get("suspended"):
        return ["The room is suspended: every visitor goes straight to your application, and nothing is counted."]
    said = [
        f"At most {number(active)} people are in your application at once, and at most {number(rate)} are let in during any minute.",
        f"A visitor counts for {duration(minutes * 60)} after the last click."
        if not room.get("disable_session_renewal")
        else f"A visit ends {duration(minutes * 60)} after the visitor was let in, even in the middle of it.",
    ]
    said += _METHODS.get(room["queueing_method"], ())
    if room.get("queue_all"):
        said.append("At the moment all new visitors are held, however much room there is.")
    elif room["queueing_method"] in ("fifo", "random"):
        said.append(_crowd(active, rate, minutes, number))
    return said


_METHODS = {
    "fifo": ("The others wait in the order in which they came.",),
    "random": ("The others wait, and who is let in next is drawn by lot.",),
    "passthrough": ("No one waits: every visitor is let in and counted.",),
    "reject": ("No one is let in: new visitors are told that it is closed.",),
}


def _crowd(active: int, rate: int, session_minutes: int, number: Callable[[float], str]) -> str:
    people = f"With {number(CROWD)} people arriving within {CROWD_MINUTES} minutes"
    wait = last_wait_minutes(active, rate, session_minutes)
    if wait is None:
        return f"{people}, the last would wait for more than a week."
    return f"{people}, the last waits about {duration(wait * 60)}." if wait else f"{people}, no one waits for more than a minute."
