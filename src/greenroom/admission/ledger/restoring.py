"""How a ledger takes over what an earlier life of it has written down."""

from typing import Protocol

from greenroom.admission.lease import Lease
from greenroom.admission.ledger.sessions import Sessions
from greenroom.admission.queueing.line import Line
from greenroom.admission.records import END, LedgerMemory, pack


class Restorable(Protocol):
    """A ledger, as far as restoring needs it."""

    @property
    def sessions(self) -> Sessions:
        """Living sessions and spent ids."""

    @property
    def lease(self) -> Lease:
        """Units and the sliding minute."""

    @property
    def line(self) -> Line:
        """Waiting visitors."""

    @property
    def log(self) -> list[bytes]:
        """Records to be written."""

    @property
    def longest_refresh_ms(self) -> int:
        """The longest interval that is ever assigned."""


def restore(ledger: Restorable, memory: LedgerMemory, now_ms: int, life_ms: int) -> None:
    """Sessions as granted units, places, the minute, into a ledger that is still empty. `life_ms`: of a session after its last renewal.

    Every waiter is given a whole refresh to come back, so no visitor is overtaken because of the restart. Provisional sessions are not
    told apart any more: they end in time, or become full ones where sessions are renewed.
    """
    sessions, lease = ledger.sessions, ledger.lease
    for ticket_id, renewed_ms in memory.sessions.items():
        if renewed_ms + life_ms > now_ms:
            sessions.resume(ticket_id, renewed_ms, memory.began.get(ticket_id, 0))
        else:  # written down, or a longer session duration would bring it back at the restart after this one
            ledger.log.append(pack(END, ticket_id, sessions.spend(ticket_id, renewed_ms, now_ms)))
    for ticket_id, until_ms in memory.spent.items():
        if until_ms > now_ms:
            sessions.remember(ticket_id, until_ms)
    lease.window.extend(sorted(memory.window))
    lease.trim(now_ms)
    lease.unacknowledged.extend(lease.window)
    lease.admitted = len(lease.window)
    lease.granted_seen = lease.used = len(sessions.inside)
    ledger.line.fill(memory.places.items(), now_ms, ledger.longest_refresh_ms)
