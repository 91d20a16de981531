"""A visitor who tries rarely, because the phone sleeps, is in front and has no permit yet: the
answer is held, and the ledger asked again.

Such a visitor is seldom there when a permit comes, so others would take it again and again. A
receiver that can hold an answer (the built-in gateway) asks `again` every second while the visitor
is connected, for at most `held_ms`, and then, or when the visitor has gone, `give_up`, which
answers "wait" and has the place kept where permits come more rarely than that. The place itself
depends on no connection: it is in the ledger and in the ticket that the visitor has.
"""

import re
from collections.abc import Callable

from greenroom.admission.ledger.keeping import HELD_MS
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.decision.verdict import Verdict
from greenroom.model.arrival_kind import ArrivalKind
from greenroom.model.visit import Arrival, Outcome, Standing, Ticket
from greenroom.ports import LedgerPort
from greenroom.request.admissible import kind_of

MARGIN_MS = 250
"""An answer that is held goes out so long before the time is up that the client gives it."""

_WAIT = re.compile(rb"(?:^|,)\s*wait\s*=\s*\"?([0-9]{1,6})\"?\s*(?:[;,]|$)", re.IGNORECASE)

Done = Callable[[Verdict], None]


def is_late(ticket: Ticket, now_ms: int) -> bool:
    """Whether a waiting visitor comes so late that the ledger has taken it for a ghost."""
    return now_ms - ticket.checked_ms - ticket.refresh_ms > GRACE_MS


def patience_ms(arrival: Arrival) -> int:
    """How long this client waits for an answer: the built-in page, and whoever says so with
    `Prefer: wait=N` (RFC 7240); else 0.

    A navigation is never held: its visitor would see nothing meanwhile.
    """
    kind = kind_of(arrival)
    if kind is ArrivalKind.UPDATE:
        return HELD_MS
    prefer = None if kind is ArrivalKind.DOCUMENT else arrival.header(b"prefer")
    found = None if prefer is None else _WAIT.search(prefer)
    return min(max(int(found[1]) * 1_000 - MARGIN_MS, 0), HELD_MS) if found else 0


def preferred(arrival: Arrival) -> bytes:
    """The preference that was applied when the answer to this arrival was held (RFC 7240); empty:
    none.
    """
    found = _WAIT.search(arrival.header(b"prefer") or b"")
    return b"wait=%d" % min(int(found[1]), HELD_MS // 1_000) if found else b""


class LateTry:
    """One request of such a visitor. It must be given up, unless `again` has brought a verdict."""

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
        """`outcome`: of the first try. `decide` makes a verdict of one that ends the wait, `hold`
        of one that does not, after `held_ms`: how long the answer may be held; 0: it is not.
        """
        self._ledger, self._ticket, self._gap_ms = ledger, ticket, gap_ms
        self._outcome, self._decide, self._hold = outcome, decide, hold
        self._over = False
        self.held_ms = held_ms

    def again(self, done: Done) -> None:
        """One more try, now or later. Calls `done` only when the visitor need not wait any more."""

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
        """The answer: wait on. None when there is a verdict already."""
        if self._over:
            return None
        self._over = True
        if self._outcome.called:
            self._ledger.keep(self._ticket.id, self._gap_ms)
        return self._hold(self._outcome, self.held_ms)
