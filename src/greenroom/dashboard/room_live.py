"""The view of a room in the dashboard, and its rank among others."""

from math import isfinite

from greenroom.configuration.state import RoomState, room_now
from greenroom.decision.room_view import FAULTS, Figures, RoomView
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.web.pages.rendering import duration


def urgency(live: RoomView) -> tuple[int, int, int]:
    """Waits and lines count by their power of two, so that rooms do not change places at every
    refresh.
    """
    word = live.word
    waiting = 0 if word in ("suspended", "passthrough") else live.figures.waiting
    rank = 0 if word in FAULTS else 1 if waiting else 2
    least_s = 60 * waiting / live.now.room.new_users_per_minute
    wait_s = live.wait_s if live.wait_s is not None and isfinite(live.wait_s) else least_s
    return rank, -int(wait_s / 60).bit_length() if waiting else 0, -waiting.bit_length()


NO_ESTIMATE = {
    "storage": "admissions have stopped",
    "holding": "new visitors are held",
    "prequeue": "the event has not started",
    "rejecting": "new visitors are rejected",
    "origin": "your site is down",
}


def no_estimate(live: RoomView) -> str:
    """Why the wait of a new visitor is unknown; empty when it is known or none."""
    if live.word in NO_ESTIMATE:
        return NO_ESTIMATE[live.word]
    known = live.wait_s is not None and isfinite(live.wait_s)
    return "" if known or not live.figures.waiting else "too few admissions to tell"


def wait_words(live: RoomView) -> str:
    reason = no_estimate(live)
    if reason:
        return f"No estimate of the wait: {reason}."
    return f"A new visitor waits about {duration(live.wait_s)}." if live.figures.waiting else ""


def room_live(
    known: Configuration, entry: Entry[Room], state: RoomState | None, now_ms: int
) -> RoomView:
    now = room_now(known, entry.id, state, now_ms)
    zone = known.zones.get(entry.parent)
    suspended = entry.record.suspended or bool(zone and zone.record.paused)
    return RoomView(now, state.figures if state else Figures(), suspended, state is not None)
