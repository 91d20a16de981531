"""Long polls for visitors in front, or soon there, who try rarely, because the phone sleeps.

Such a visitor is seldom there when a permit comes, so others would always take it. A front end that
can hold an answer calls `again` every second while the visitor is connected, for at most `held_ms`,
and then, or on disconnect, `give_up`, which answers "wait" and keeps the place where permits come
more rarely than that. The place is in the ledger and the ticket, and depends on no connection.
"""

import re
from collections.abc import Callable

from greenroom.admission.ledger.keeping import HELD_MS
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.decision.verdict import Verdict
from greenroom.ledgers.port import LedgerPort
from greenroom.model.arrival_kind import ArrivalKind
from greenroom.model.visit import Arrival, Outcome, Standing, Ticket
from greenroom.request.admissible import kind_of

MARGIN_MS = 250

_WAIT = re.compile(rb"(?:^|,)\s*wait\s*=\s*\"?([0-9]{1,6})\"?\s*(?:[;,]|$)", re.IGNORECASE)

Done = Callable[[Verdict], None]


def is_late(ticket: Ticket, now_ms: int) -> bool:
    """Late enough to count as absent in the ledger."""
    return now_ms - ticket.checked_ms - ticket.refresh_ms > GRACE_MS


def patience_ms(arrival: Arrival) -> int:
    """The built-in page, and `Prefer: wait=N` (RFC 7240); else 0, as for navigations."""
    kind = kind_of(arrival)
    if kind is ArrivalKind.UPDATE:
        return HELD_MS
    prefer = None if kind is ArrivalKind.DOCUMENT else arrival.header(b"prefer")
    found = None if prefer is None else _WAIT.search(prefer)
    return min(max(int(found[1]) * 1_000 - MARGIN_MS, 0), HELD_MS) if found else 0


def preferred(arrival: Arrival) -> bytes:
    found = _WAIT.search(arrival.header(b"prefer") or b"")
    return b"wait=%d" % min(int(found[1]), HELD_MS // 1_000) if found else b""


class LateTry:
    """Must be given up, unless `again` has brought a verdict."""

    __slots__ = (
        "_decide",
        "_gap_ms",
        "_hold",
        "_ledger",
        "_outcome",
        "_over",
        "_ticket",
        "held_ms",
    )

    def __init__(
        self,
        ledger: LedgerPort,
        ticket: Ticket,
        gap_ms: int,
        outcome: Outcome,
        decide: Callable[[Outcome, Done], None],
        hold: Callable[[Outcome, int], Verdict],
        held_ms: int,
    ) -> None:
        """`decide` makes a verdict of an outcome that ends the wait, `hold` of one that does not.
        `held_ms` `0` disables holding.
        """
        self._ledger, self._ticket, self._gap_ms = ledger, ticket, gap_ms
        self._outcome, self._decide, self._hold = outcome, decide, hold
        self._over = False
        self.held_ms = held_ms

    def again(self, done: Done) -> None:
        """Calls `done`, now or later, only when the wait is over."""

        def heard(outcome: Outcome) -> None:
            if self._over:
                return
            self._outcome = outcome
            if outcome.standing is not Standing.WAITING:
                self._over = True
                self._decide(outcome, done)

        if not self._over:
            self._ledger.poll(self._ticket.id, self._ticket.key, heard)

    def give_up(self) -> Verdict | None:
        """None when there is a verdict already."""
        if self._over:
            return None
        self._over = True
        if self._outcome.called:
            self._ledger.keep(self._ticket.id, self._gap_ms)
        return self._hold(self._outcome, self.held_ms)
