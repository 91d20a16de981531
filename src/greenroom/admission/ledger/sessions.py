"""Sessions by ticket id, and the ids whose session is over. A session is stored as its last renewal:
it ends the room's current duration later, so a changed duration applies at once.
"""

from collections.abc import Callable

from greenroom.admission.ledger.tally import VisitTally
from greenroom.admission.messages.line_counts import AGE_CELL_MS, Ages
from greenroom.admission.timer_wheel import CELL_BITS, Wheel
from greenroom.model.visit import AWAY_MAX_MS, PLACE_KEPT_MS

SPENT_SLACK_MS = 30_000
"""Largest difference between clocks that stamp a ticket."""

BEGAN_BITS = 48
"""The low bits of a session say when it began, 0 if unknown; above them is its last renewal."""

BEGAN_MASK = (1 << BEGAN_BITS) - 1

Ended = Callable[[bytes, int, int, int], None]
"""Takes id, until when it is spent, when the session's time ran out, now."""


class Sessions:
    __slots__ = (
        "_spent_wheel",
        "_wheel",
        "ended",
        "extended",
        "inside",
        "kept_ms",
        "life_ms",
        "seen",
        "spent",
        "tally",
        "unshown",
    )

    def __init__(self, life_ms: int) -> None:
        self.life_ms = life_ms
        self.kept_ms = PLACE_KEPT_MS
        """How long a waiting ticket may be accepted after its last check-in or admission."""
        self.tally = VisitTally()
        self.seen: dict[bytes, int] = {}
        self.inside: dict[bytes, int] = {}
        """Living or not yet swept: id -> last renewal << BEGAN_BITS | when it began."""
        self.unshown: dict[bytes, int] = {}
        """Unconfirmed sessions (`newcomers`): id -> when it began."""
        self.spent: dict[bytes, int] = {}
        """Id -> when it is forgotten."""
        self.extended: dict[bytes, int] = {}
        """Extended sessions: id -> last renewal before the first extension."""
        self.ended = Ages()
        self._wheel: Wheel[bytes] = Wheel()
        self._spent_wheel: Wheel[bytes] = Wheel()

    def renewed(self, ticket_id: bytes) -> int | None:
        session = self.inside.get(ticket_id)
        return None if session is None else session >> BEGAN_BITS

    def begin(self, ticket_id: bytes, now_ms: int) -> None:
        self._enter(ticket_id, now_ms, now_ms)

    def resume(self, ticket_id: bytes, renewed_ms: int, began_ms: int = 0) -> None:
        """`began_ms` 0: unknown, unless the session is here already."""
        self.unshown.pop(ticket_id, None)
        self._enter(ticket_id, renewed_ms, began_ms or self.inside.get(ticket_id, 0) & BEGAN_MASK)

    def _enter(self, ticket_id: bytes, renewed_ms: int, began_ms: int) -> None:
        self.inside[ticket_id] = renewed_ms << BEGAN_BITS | began_ms
        self._wheel.file(renewed_ms + self.life_ms, ticket_id)

    def renew(self, ticket_id: bytes, now_ms: int) -> None:
        self.inside[ticket_id] = now_ms << BEGAN_BITS | self.inside[ticket_id] & BEGAN_MASK

    def forget(self, ticket_id: bytes) -> None:
        del self.inside[ticket_id]
        self.extended.pop(ticket_id, None)
        self.seen.pop(ticket_id, None)
        self.unshown.pop(ticket_id, None)

    def began(self, ticket_id: bytes) -> int:
        return self.inside[ticket_id] & BEGAN_MASK

    def rename(self, old: bytes, new: bytes) -> None:
        """`new` must be unknown."""
        session = self.inside[new] = self.inside.pop(old)
        self._wheel.file((session >> BEGAN_BITS) + self.life_ms, new)
        for known in (self.seen, self.unshown, self.extended):
            if old in known:
                known[new] = known.pop(old)

    def begun(self) -> dict[bytes, int]:
        return {
            ticket_id: began_ms
            for ticket_id, session in self.inside.items()
            if (began_ms := session & BEGAN_MASK)
        }

    def renewals(self) -> dict[bytes, int]:
        return {ticket_id: session >> BEGAN_BITS for ticket_id, session in self.inside.items()}

    def spend(self, ticket_id: bytes, last_seen_ms: int, now_ms: int) -> int:
        """Spends the id while a waiting ticket of it may be valid: until `kept_ms` after its last
        check-in, which preceded the session's last renewal. Returns that time; 0: it has passed.
        """
        until_ms = self.spent_until(last_seen_ms)
        if until_ms <= now_ms:
            return 0
        self.remember(ticket_id, until_ms)
        return until_ms

    def spend_place(self, ticket_id: bytes, now_ms: int) -> int:
        """As `spend`, for a place: a day longer where tickets are good until their turn."""
        away_ms = AWAY_MAX_MS if self.kept_ms > PLACE_KEPT_MS else 0
        return self.spend(ticket_id, now_ms + away_ms, now_ms)

    def spent_until(self, last_seen_ms: int) -> int:
        return last_seen_ms + self.kept_ms + SPENT_SLACK_MS

    def last_seen_ms(self, until_ms: int) -> int:
        """The inverse of `spent_until`."""
        return until_ms - self.kept_ms - SPENT_SLACK_MS

    def remember(self, ticket_id: bytes, until_ms: int) -> None:
        self.spent[ticket_id] = until_ms
        self._spent_wheel.file(until_ms, ticket_id)

    def revive(self, ticket_id: bytes) -> None:
        self.spent.pop(ticket_id, None)

    def end(self, ticket_id: bytes, now_ms: int) -> int:
        """Returns as `spend`."""
        session = self.inside.pop(ticket_id)
        self.unshown.pop(ticket_id, None)
        if self.extended:
            self.extended.pop(ticket_id, None)
        began_ms, renewed_ms = session & BEGAN_MASK, session >> BEGAN_BITS
        seen_ms = self.seen.pop(ticket_id, 0)
        if began_ms:
            self.ended.count(now_ms // AGE_CELL_MS - began_ms // AGE_CELL_MS)
            self.tally.stayed(max(seen_ms, renewed_ms) - began_ms)
        return self.spend(ticket_id, renewed_ms, now_ms)

    def end_all(self, now_ms: int) -> list[tuple[bytes, int]]:
        """Returns (id, until when it is spent). Not counted in the lengths of stays."""
        ended = [
            (ticket_id, self.spend(ticket_id, renewed_ms, now_ms))
            for ticket_id, renewed_ms in self.renewals().items()
        ]
        self.inside.clear()
        self.extended.clear()
        self.seen.clear()
        self.unshown.clear()
        return ended

    def expire(self, now_ms: int, limit: int, ended: Ended) -> None:
        """Ends sessions whose time ran out, and forgets old spent ids."""
        life_ms = self.life_ms
        for ticket_id in self._wheel.due(now_ms, limit):
            last_ms = self.renewed(ticket_id)
            if last_ms is None:
                continue
            if last_ms + life_ms >> CELL_BITS >= now_ms >> CELL_BITS:
                self._wheel.file(last_ms + life_ms, ticket_id)
            else:
                ended(ticket_id, self.end(ticket_id, now_ms), last_ms + life_ms, now_ms)
        for ticket_id in self._spent_wheel.due(now_ms, limit):
            until_ms = self.spent.get(ticket_id)
            if until_ms is None or until_ms <= now_ms:
                self.spent.pop(ticket_id, None)
            else:
                self._spent_wheel.file(until_ms, ticket_id)

    def overdue(self, now_ms: int) -> bool:
        return self._wheel.overdue(now_ms) or self._spent_wheel.overdue(now_ms)

    def change_life(self, life_ms: int, now_ms: int, ended: Ended) -> None:
        """Sessions that were over under the old duration do not come back."""
        if life_ms == self.life_ms:
            return
        for ticket_id, last_ms in self.renewals().items():
            if last_ms + self.life_ms <= now_ms:
                ended(ticket_id, self.end(ticket_id, now_ms), last_ms + self.life_ms, now_ms)
        shorter = life_ms < self.life_ms
        self.life_ms = life_ms
        if shorter:  # longer ones are found by themselves when their old cell comes up
            self._wheel = Wheel()
            for ticket_id, last_ms in self.renewals().items():
                self._wheel.file(last_ms + life_ms, ticket_id)
