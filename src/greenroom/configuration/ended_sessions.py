"""Ends all sessions of a room: every ledger that reads the stored time ends its sessions. The time
only grows, because ledgers ignore earlier ones.
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


def end_sessions(zone_id: str, room_id: str) -> ConfigChange:
    """Raises Refused for a room of a configuration file."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        entry = room_of(known, zone_id, room_id)
        refuse_read_only(entry, "waiting room")
        room = replace(
            entry.record, sessions_ended_ms=max(at.now_ms, entry.record.sessions_ended_ms + 1)
        )
        return PlannedChange(
            [Put(room, zone_id)], lambda after: show(after, after.rooms[room_id], at.now_ms)
        )

    return plan
