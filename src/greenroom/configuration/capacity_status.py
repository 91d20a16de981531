"""How many visitors a room's origin takes, for autoscalers and scripts. An extension."""

from typing import Any

from greenroom.configuration.state import RoomState, room_now
from greenroom.decision.room_view import Figures
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import CAPACITY_MODES, Room
from greenroom.web.api_schema import ApiSchema, computed, read_as
from greenroom.web.api_shapes import Json, Plain, Shown
from greenroom.web.refusals import ApiFault, Code, Refused, refuse_if
from greenroom.web.time_format import moment as written

INSTANCES_MOST = 1_000_000

_COUNT = {"type": "integer", "minimum": 0}
_PROPOSAL = {
    "type": ["object", "null"],
    "required": ["total_active_users", "reason", "end_time"],
    "properties": {
        "total_active_users": _COUNT,
        "reason": {"type": "string"},
        "end_time": {"type": "string", "format": "date-time"},
    },
}

ROOM_CAPACITY = ApiSchema(
    (
        computed(
            "mode",
            "`capacity` of the room; `fixed` also where no process sees the origin's answers",
            Shown({"type": "string", "enum": list(CAPACITY_MODES)}),
        ),
        computed(
            "desired_sessions",
            "visitors who are active or wait, at most total_active_users: for autoscalers",
            Shown(_COUNT),
        ),
        computed("active", "visitors with a living session", Shown(_COUNT)),
        computed("waiting", "visitors in line", Shown(_COUNT)),
        computed(
            "capacity",
            "active visitors that the origin takes; total_active_users while that is not known",
            Shown(_COUNT),
        ),
        computed("limit", "limit of active visitors that applies now", Shown(_COUNT)),
        computed(
            "stopped",
            "whether admissions are stopped, because the origin is too slow or fails",
            Shown({"type": "boolean"}),
        ),
        computed("reason", "why the capacity is what it is", Shown({"type": "string"})),
        computed("proposal", "limit that `suggest` proposes, until `end_time`", Shown(_PROPOSAL)),
        computed(
            "instances",
            "how many instances of the origin run; while that changes the capacity does not grow",
            Plain(int),
            writable=True,
        ),
    )
)


def show(
    known: Configuration, entry: Entry[Room], state: RoomState | None, now_ms: int, instances: int
) -> Json:
    now = room_now(known, entry.id, state, now_ms)
    figures = state.figures if state else Figures()
    found = state.capacity if state else None
    most = now.room.total_active_users
    proposal = found.proposal if found and found.proposal else None
    return {
        "mode": found.mode if found else now.room.capacity,
        "desired_sessions": min(most, figures.active + figures.waiting),
        "active": figures.active,
        "waiting": figures.waiting,
        "capacity": found.sessions if found else most,
        "limit": now.active_limit,
        "stopped": now.origin_slow,
        "reason": found.reason if found else "",
        "proposal": None
        if proposal is None
        else {
            "total_active_users": proposal.sessions,
            "reason": proposal.reason,
            "end_time": written(proposal.until_ms),
        },
        "instances": instances,
    }


def instances_as_sent(document: Any) -> int:
    """Raises Refused."""
    values, faults = read_as(ROOM_CAPACITY, document)
    refuse_if(faults)
    number = values.get("instances")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= INSTANCES_MOST:
        reason = f"instances: must be a number from 0 to {INSTANCES_MOST}"
        raise Refused(ApiFault(Code.INVALID, reason, "/instances"))
    return number
