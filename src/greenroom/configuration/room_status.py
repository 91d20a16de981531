"""The current status of a room, as the API returns it."""

import math

from greenroom.admission.schedule import Phase
from greenroom.configuration.state import RoomState, room_now
from greenroom.decision.room_view import CenterView, Figures
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.web.api_schema import ApiSchema, computed
from greenroom.web.api_shapes import Json, Shown

STATUSES = ("not_queueing", "queueing", "event_prequeueing", "suspended")
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = ("event_id", "draw", "commitment")
_DRAWS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": [*_TEXTS, "held"],
        "properties": {
            **{name: {"type": "string"} for name in _TEXTS},
            "held": {"type": "boolean"},
        },
    },
}

_CENTERS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": [
            "name",
            "active_users",
            "waiting_users",
            "admitted_last_minute",
            "permits_unused",
            "age_seconds",
            "silent",
        ],
        "properties": {
            "name": {"type": "string"},
            "active_users": _COUNT,
            "waiting_users": _COUNT,
            "admitted_last_minute": _COUNT,
            "permits_unused": _COUNT,
            "age_seconds": {"type": ["number", "null"], "minimum": 0},
            "silent": {"type": "boolean"},
        },
    },
}

STATUS = ApiSchema(
    (
        computed("status", "state of the room", Shown({"type": "string", "enum": list(STATUSES)})),
        computed(
            "event_id", "the current event; empty when there is none", Shown({"type": "string"})
        ),
        computed("estimated_queued_users", "visitors in line", Shown(_COUNT)),
        computed("estimated_total_active_users", "visitors with a living session", Shown(_COUNT)),
        computed(
            "max_estimated_time_minutes",
            "the longest wait currently shown to a visitor, in minutes",
            Shown(_COUNT),
        ),
        computed(
            "data_centers",
            "what each data center has of it, where several share the room, this one first; one that"
            " is silent is shown as it was last heard",
            Shown(_CENTERS),
        ),
        computed(
            "draws",
            "draws of the current and coming events, with the commitments to their seeds",
            Shown(_DRAWS),
        ),
    )
)


def status(known: Configuration, entry: Entry[Room], state: RoomState | None, now_ms: int) -> Json:
    """A room that no edge has opened yet is empty."""
    now = room_now(known, entry.id, None, now_ms)
    ledgers = state.figures if state else Figures()
    suspended = entry.record.suspended or known.zones[entry.parent].record.paused
    word = (
        "suspended"
        if suspended
        else "event_prequeueing"
        if now.phase is Phase.PREQUEUE
        else "queueing"
        if ledgers.waiting
        else "not_queueing"
    )
    return {
        "status": word,
        "event_id": now.event.id if now.event and not suspended else "",
        "estimated_queued_users": ledgers.waiting,
        "estimated_total_active_users": ledgers.active,
        "max_estimated_time_minutes": _longest_wait(now.room, ledgers),
        "data_centers": [center_json(center) for center in ledgers.centers],
        "draws": [
            {
                "event_id": draw.event_id,
                "draw": draw.id,
                "commitment": draw.commitment,
                "held": draw.held,
            }
            for draw in (state.draws if state else ())
        ],
    }


def center_json(center: CenterView) -> Json:
    return {
        "name": center.name,
        "active_users": center.active,
        "waiting_users": center.waiting,
        "admitted_last_minute": center.last_minute,
        "permits_unused": center.permits_unused,
        "age_seconds": None if center.age_s is None else round(center.age_s, 1),
        "silent": center.silent,
    }


def _longest_wait(room: Room, ledgers: Figures) -> int:
    """Of the last visitor; in a random room, when three quarters are in."""
    if ledgers.estimate is None or room.queue_all or not ledgers.waiting:
        return 0
    seconds = ledgers.estimate.p75_s if room.queueing_method == "random" else ledgers.estimate.p50_s
    return -int(-seconds // 60) if math.isfinite(seconds) and seconds > 0 else 0
