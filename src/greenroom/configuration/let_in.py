"""Admits more visitors at once: raises both limits for one minute, the window of
`new_users_per_minute`. Every component sees two changes of limits at known moments, as with events.
"""

from dataclasses import replace

from greenroom.configuration.rooms import room_of, show
from greenroom.model.change import Put
from greenroom.model.configuration import Configuration
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    refuse_read_only,
)
from greenroom.web.refusals import ApiFault, Code, Refused

LET_IN_MS = 60_000
LET_IN_MOST = 100_000


def let_in(zone_id: str, room_id: str, count: int | None) -> ConfigChange:
    """Raises Refused for a room of a configuration file, and until an earlier minute is over."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        entry = room_of(known, zone_id, room_id)
        refuse_read_only(entry, "waiting room")
        if count is None or not 1 <= count <= LET_IN_MOST:
            raise Refused(
                ApiFault(Code.INVALID, f"count: must be a number from 1 to {LET_IN_MOST}", "/count")
            )
        left_ms = entry.record.let_in_until_ms - at.now_ms
        if left_ms > 0:
            reason = (
                f"count: {entry.record.let_in} more visitors are let in already; wait"
                f" {-(-left_ms // 1000)} seconds"
            )
            raise Refused(ApiFault(Code.INVALID, reason, "/count"))
        room = replace(entry.record, let_in=count, let_in_until_ms=at.now_ms + LET_IN_MS)
        return PlannedChange(
            [Put(room, zone_id)], lambda after: show(after, after.rooms[room_id], at.now_ms)
        )

    return plan
