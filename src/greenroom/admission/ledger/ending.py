"""An operator ends all sessions of a room: what a ledger does when it hears of it.

The room says when that was (`Room.sessions_ended_ms`). A ledger hears of it with the settings, each
ledger at its own moment, and ends in one step what it holds then; the same moment again, or an
earlier one, changes nothing. Ended ids are spent, so their visitors come as new ones. Units are
kept for CLOSING_MS (`lease`), because until then requests may use the origin that no ledger was
asked about.
"""

from typing import Protocol

from greenroom.admission.lease import Lease
from greenroom.admission.ledger.sessions import Sessions
from greenroom.admission.records import END, pack


class EndingLedger(Protocol):
    """What ending sessions needs of a ledger. Implemented by `ledger.ledger.Ledger`."""

    sessions: Sessions
    lease: Lease
    log: list[bytes]


def end_all_sessions(ledger: EndingLedger, now_ms: int) -> None:
    """Ends every session that is here now."""
    ended = ledger.sessions.end_all(now_ms)
    ledger.log.extend(pack(END, ticket_id, until_ms) for ticket_id, until_ms in ended)
    ledger.lease.close(len(ended), now_ms)
