"""How a ledger takes over what an earlier life of it has written down."""

from typing import Protocol

from greenroom.admission.lease import CLOSING_MS, Lease
from greenroom.admission.ledger.sessions import Sessions, last_seen_ms
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


def restore(
    ledger: Restorable, memory: LedgerMemory, now_ms: int, life_ms: int, ended_ms: int = 0
) -> None:
    """Sessions as granted units, places, the minute, into a ledger that is still empty. `life_ms`:
    of a session after its last renewal.

    `ended_ms`: when an operator ended all sessions. Those that were renewed last before that do not
    come back, and where it was just now, their units are closing. Which ended ids had one is not
    written down, so every id counts that may have had one then.

    Every waiter is given a whole refresh to come back, so no visitor is overtaken because of the
    restart. Provisional sessions are not told apart any more: they end in time, or become full ones
    where sessions are renewed.
    """
    sessions, lease = ledger.sessions, ledger.lease
    for ticket_id, renewed_ms in memory.sessions.items():
        if renewed_ms + life_ms > now_ms and renewed_ms >= ended_ms:
            sessions.resume(ticket_id, renewed_ms, memory.began.get(ticket_id, 0))
        else:  # written down, or a longer session duration would bring it back at the restart after this one
            ledger.log.append(pack(END, ticket_id, sessions.spend(ticket_id, renewed_ms, now_ms)))
    closing = sum(
        1
        for renewed_ms in memory.sessions.values()
        if renewed_ms < ended_ms and renewed_ms + life_ms > now_ms
    )
    for ticket_id, until_ms in memory.spent.items():
        if until_ms > now_ms:
            sessions.remember(ticket_id, until_ms)
        if now_ms < ended_ms + CLOSING_MS and last_seen_ms(until_ms) + life_ms > ended_ms:
            closing += 1
    lease.window.extend(sorted(memory.window))
    lease.trim(now_ms)
    lease.unacknowledged.extend(lease.window)
    lease.admitted = len(lease.window)
    lease.granted_seen = lease.used = len(sessions.inside) + closing
    lease.close(closing, now_ms)
    ledger.line.fill(memory.places.items(), now_ms, ledger.longest_refresh_ms)
