"""Giving up a data center. Only the coordinator knows how long one is silent and what it holds; any
process accepts the request.
"""

from collections.abc import Iterable
from typing import Any

from greenroom.admission.coordinator.coordinator import ORPHAN_SLACK_MS
from greenroom.admission.lease import CUT_OFF_MS
from greenroom.configuration.state import Observed, ProcessState, SyncState
from greenroom.errors import StorageFailed
from greenroom.model.room import Room
from greenroom.web.api_schema import ApiSchema, computed
from greenroom.web.api_shapes import Json, Shown
from greenroom.web.config_service import ConfigService
from greenroom.web.refusals import ApiFault, Code, Refused, not_found
from greenroom.web.time_format import moment

KIND = "data_center"

DATA_CENTER = ApiSchema(
    (
        computed("name", "name of the data center", Shown({"type": "string"})),
        computed(
            "silent_seconds",
            "since the coordinator heard from it; null where this process is not the coordinator",
            Shown({"type": ["number", "null"]}),
        ),
        computed(
            "silent_since",
            "when that was",
            Shown({"type": ["string", "null"], "format": "date-time"}),
        ),
        computed(
            "units_held",
            "units of capacity that others get when it is given up, in all rooms; null as above and"
            " while it is heard",
            Shown({"type": ["integer", "null"]}),
        ),
        computed(
            "units_returning",
            "units of capacity that others get when its last session must have ended",
            Shown({"type": ["integer", "null"]}),
        ),
        computed(
            "units_free_at",
            "when others get its units, if it is given up now or has been",
            Shown({"type": ["string", "null"], "format": "date-time"}),
        ),
    )
)


def longest_ms(rooms: Iterable[Room]) -> int:
    return (
        max((room.session_ms + room.renewal_age_ms for room in rooms), default=0) + ORPHAN_SLACK_MS
    )


def listed(state: ProcessState) -> list[Json]:
    sync = state.sync
    return [] if sync is None else [_shown(state, sync, name) for name in sync.data_centers]


def givable(state: ProcessState, name: str) -> Json:
    """Raises Refused for one that is heard, or our own."""
    sync = state.sync
    if sync is None or name not in sync.data_centers:
        raise not_found("data center", name)
    if name == sync.data_center:
        raise Refused(
            ApiFault(Code.INVALID, f"{name} is the data center of this process, which runs")
        )
    silent_s = sync.silent_s.get(name)
    if silent_s is not None and silent_s * 1000 < CUT_OFF_MS:
        raise Refused(
            ApiFault(
                Code.INVALID,
                f"{name} was heard {silent_s:.1f} seconds ago: stop its processes first",
            )
        )
    return _shown(state, sync, name)


async def give_up(observed: Observed, name: str) -> Json:
    """In the event loop. Raises Refused."""
    found = givable(observed.state(), name)
    try:
        await observed.give_up(name)
    except StorageFailed as error:
        raise Refused(ApiFault(Code.UNAVAILABLE, str(error))) from None
    return found


def noted(config_service: ConfigService, author: str, found: Json) -> None:
    """Writes the audit log. Blocks."""
    config_service.store.note(
        KIND, found["name"], author=author, now_ms=config_service.clock.now_ms(), after=found
    )


def _shown(state: ProcessState, sync: SyncState, name: str) -> Json:
    silent_s, lost = sync.silent_s.get(name), sync.lost.get(name)
    facts: dict[str, Any] = dict.fromkeys(
        ("silent_since", "units_held", "units_returning", "units_free_at")
    )
    if lost is not None and silent_s is not None:
        free_ms = (
            longest_ms(room.room for room in state.rooms) if lost.held else int(lost.free_s * 1000)
        )
        facts = {
            "silent_since": moment(state.now_ms - int(silent_s * 1000)),
            "units_held": lost.held,
            "units_returning": lost.returning,
            "units_free_at": (
                moment(state.now_ms + free_ms) if lost.held or lost.returning else None
            ),
        }
    return DATA_CENTER.show({"name": name, "silent_seconds": silent_s, **facts})
