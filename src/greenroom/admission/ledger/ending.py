"""An operator ends all sessions of a room. A ledger learns of it with the settings, at its own
moment, and ends in one step what it holds then; the same moment again, or an earlier one, changes
nothing. Ended ids are spent, and units are kept for CLOSING_MS (`lease`).
"""

from typing import Protocol

from greenroom.admission.lease import Lease
from greenroom.admission.ledger.sessions import Sessions
from greenroom.admission.records import END, pack


class EndingLedger(Protocol):
    sessions: Sessions
    lease: Lease
    log: list[bytes]


def end_all_sessions(ledger: EndingLedger, now_ms: int) -> None:
    ended = ledger.sessions.end_all(now_ms)
    ledger.log.extend(pack(END, ticket_id, until_ms) for ticket_id, until_ms in ended)
    ledger.lease.close(len(ended), now_ms)
