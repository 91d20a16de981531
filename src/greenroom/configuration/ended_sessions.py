"""All sessions of a room are ended by an operator. An extension: Cloudflare has no such call.

The room remembers when, and every ledger ends what it holds when it hears of it
(`admission.ledger.ending`). The moment only grows, also where the clock of this machine was set
back, because a ledger obeys later ones only.
"""

from dataclasses import replace

from greenroom.configuration.rooms import room_of, show
from greenroom.configuration.service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    refuse_read_only,
)
from greenroom.model.change import Put
from greenroom.model.configuration import Configuration


def end_sessions(zone_id: str, room_id: str) -> ConfigChange:
    """Every visitor who is inside now comes as a new one. Raises Refused for a room of a
    configuration file.
    """

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
