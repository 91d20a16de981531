"""A visitor who tries rarely, because the phone sleeps, is in front and has no permit yet: the answer is held, and the ledger asked again.

Such a visitor is seldom there when a permit comes, so others would take it again and again. A receiver that can hold an answer
(the built-in gateway) asks `again` every second while the visitor is connected, for at most `keeping.HELD_MS`, and then, or when the
visitor has gone, `give_up`, which answers "wait" and has the place kept where permits come more rarely than that. The place itself
depends on no connection: it is in the ledger and in the ticket that the visitor has.
"""

from collections.abc import Callable

from greenroom.admission.queueing.line import GRACE_MS
from greenroom.decision.verdict import Verdict
from greenroom.model.visit import Outcome, Standing, Ticket
from greenroom.ports import LedgerPort

Done = Callable[[Verdict], None]


def is_late(ticket: Ticket, now_ms: int) -> bool:
    """Whether a waiting visitor comes so late that the ledger has taken it for a ghost."""
    return now_ms - ticket.checked_ms - ticket.refresh_ms > GRACE_MS


class LateTry:
    """One request of such a visitor. It must be given up, unless `again` has brought a verdict."""

    __slots__ = ("_decide", "_gap_ms", "_hold", "_ledger", "_outcome", "_over", "_ticket")

    def __init__(
        self,
        ledger: LedgerPort,
        ticket: Ticket,
        gap_ms: int,
        outcome: Outcome,
        decide: Callable[[Outcome, Done], None],
        hold: Callable[[Outcome], Verdict],
    ) -> None:
        """`outcome`: of the first try. `decide` makes a verdict of one that ends the wait, `hold` of one that does not."""
        self._ledger, self._ticket, self._gap_ms = ledger, ticket, gap_ms
        self._outcome, self._decide, self._hold = outcome, decide, hold
        self._over = False

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
        return self._hold(self._outcome)
