"""A failed document of an admitted visitor. The ledger stops the session's clock and keeps the turn
(`admission.ledger.failures`), the cookie outlives the session, and the page says until when the
turn is kept.
"""

from collections.abc import Callable

from greenroom.admission.ledger.failures import TURN_KEPT_MS
from greenroom.decision.open_session import SessionServices
from greenroom.decision.render import ORIGIN_RETRY_S, origin_error
from greenroom.decision.verdict import Forward
from greenroom.ledgers.port import nobody
from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival, Outcome, Standing

FAILURES = frozenset((500, 502, 503, 504))
"""Statuses of a failed origin, not a failed request."""

RETRY_SPREAD_S = 8
"""Spreads the retries of visitors who failed together."""


class FailedDocument:
    """Call `report` once, or `answer`, which does."""

    __slots__ = ("_forward", "_services", "cookie")

    def __init__(self, forward: Forward, services: SessionServices) -> None:
        """`forward`: of an admitted visitor, not provisionally."""
        self._forward, self._services = forward, services
        self.cookie = forward.set_cookie
        """The ticket, for a browser that keeps it until the turn is no longer safe."""
        schedule = services.table.rooms.get(forward.room_id)
        if schedule is not None and forward.set_cookie:
            now_ms = services.now_ms()
            sealed = forward.set_cookie.partition(b";")[0].partition(b"=")[2]
            lasts_ms = max(0, forward.expires_ms - now_ms) + TURN_KEPT_MS
            writer = schedule.now.cookies.of(forward.scheme, forward.prefix)
            self.cookie = writer.set(sealed, lasts_ms // 1000, now_ms)

    def report(self, then: Callable[[Outcome], None] = nobody) -> bytes:
        """Returns the cookie."""
        schedule, ticket = (
            self._services.table.rooms.get(self._forward.room_id),
            self._forward.ticket,
        )
        if schedule is None or ticket is None:
            then(Outcome(Standing.GONE))
        else:
            schedule.now.ledger.fail(ticket.id, then)
        return self.cookie

    def answer(self, status: int, arrival: Arrival, then: Callable[[Answer], None]) -> None:
        """The page for an origin that gave no answer. `then` is called exactly once, now or later."""
        forward, ticket = self._forward, self._forward.ticket

        def heard(outcome: Outcome) -> None:
            active = outcome.standing is Standing.ACTIVE
            safe_ms = outcome.expires_ms + outcome.kept_ms if active else 0
            spread = (ticket.id[0] if ticket else 0) + self._services.now_ms() // 1000
            retry_s = ORIGIN_RETRY_S + spread % RETRY_SPREAD_S
            then(origin_error(status, arrival, self.cookie, forward.page, safe_ms, retry_s))

        self.report(heard)
