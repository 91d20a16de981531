"""Who is inside: living sessions by ticket id, and the ids that have had theirs.

A session is one number, its last renewal: its end is that plus what the room grants now, so a changed session length counts
from the last renewal on. How old it was at its end is counted for the forecast. Memory: two dict entries and one wheel entry.
"""

from collections.abc import Callable

from greenroom.admission.census import AGE_CELL_MS, Ages
from greenroom.admission.wheel import CELL_BITS, Wheel
from greenroom.model.visit import PLACE_KEPT_MS

SPENT_SLACK_MS = 30_000
"""Clocks of two machines that stamp a ticket may differ by this much; spent ids are remembered that much longer."""


class Sessions:
    """The living and the spent ticket ids of one room."""

    __slots__ = ("_begun", "_spent_wheel", "_wheel", "ended", "life_ms", "renewed", "spent")

    def __init__(self, life_ms: int) -> None:
        self.life_ms = life_ms
        self.renewed: dict[bytes, int] = {}
        """Living (or not yet swept) sessions: id -> last renewal."""
        self.spent: dict[bytes, int] = {}
        """Ids that never get a place or a session again: id -> until when that must be remembered."""
        self.ended = Ages()
        self._begun: dict[bytes, int] = {}  # step of 5 s in which it began, where that is known
        self._wheel: Wheel[bytes] = Wheel()
        self._spent_wheel: Wheel[bytes] = Wheel()

    def begin(self, ticket_id: bytes, now_ms: int) -> None:
        """A session that begins."""
        self._begun[ticket_id] = now_ms // AGE_CELL_MS
        self.resume(ticket_id, now_ms)

    def resume(self, ticket_id: bytes, renewed_ms: int) -> None:
        """A session that was renewed then and began nobody knows when."""
        self.renewed[ticket_id] = renewed_ms
        self._wheel.file(renewed_ms + self.life_ms, ticket_id)

    def forget(self, ticket_id: bytes) -> None:
        """A session that never was, after all."""
        del self.renewed[ticket_id]
        self._begun.pop(ticket_id, None)

    def spend(self, ticket_id: bytes, last_seen_ms: int, now_ms: int) -> int:
        """Remembers an id for as long as a waiting ticket of that name may be valid; until when, 0 when that has passed.

        A waiting ticket is good for five minutes after its last check-in, and the last one was before the session began, hence
        before its last renewal.
        """
        until_ms = last_seen_ms + PLACE_KEPT_MS + SPENT_SLACK_MS
        if until_ms <= now_ms:
            return 0
        self.remember(ticket_id, until_ms)
        return until_ms

    def remember(self, ticket_id: bytes, until_ms: int) -> None:
        """As `spend`, when the time is known."""
        self.spent[ticket_id] = until_ms
        self._spent_wheel.file(until_ms, ticket_id)

    def end(self, ticket_id: bytes, now_ms: int) -> int:
        """Ends a session; until when its id stays spent (0: needs no memory)."""
        begun = self._begun.pop(ticket_id, None)
        if begun is not None:
            self.ended.count(now_ms // AGE_CELL_MS - begun)
        return self.spend(ticket_id, self.renewed.pop(ticket_id), now_ms)

    def expire(self, now_ms: int, limit: int, ended: Callable[[bytes, int], None]) -> None:
        """Ends at most `limit` sessions whose time is over: `ended(id, spent until)` for each. Forgets old spent ids."""
        renewed, life_ms = self.renewed, self.life_ms
        for ticket_id in self._wheel.due(now_ms, limit):
            last_ms = renewed.get(ticket_id)
            if last_ms is None:
                continue
            if last_ms + life_ms >> CELL_BITS >= now_ms >> CELL_BITS:
                self._wheel.file(last_ms + life_ms, ticket_id)
            else:
                ended(ticket_id, self.end(ticket_id, now_ms))
        for ticket_id in self._spent_wheel.due(now_ms, limit):
            until_ms = self.spent.get(ticket_id)
            if until_ms is None or until_ms <= now_ms:
                self.spent.pop(ticket_id, None)
            else:
                self._spent_wheel.file(until_ms, ticket_id)

    def change_life(self, life_ms: int, now_ms: int, ended: Callable[[bytes, int], None]) -> None:
        """From now on every session ends at its last renewal plus this; those that were over before do not come back."""
        if life_ms == self.life_ms:
            return
        for ticket_id in [one for one, last_ms in self.renewed.items() if last_ms + self.life_ms <= now_ms]:
            ended(ticket_id, self.end(ticket_id, now_ms))
        shorter = life_ms < self.life_ms
        self.life_ms = life_ms
        if shorter:  # longer ones are found by themselves when their old cell comes up
            self._wheel = Wheel()
            for ticket_id, last_ms in self.renewed.items():
                self._wheel.file(last_ms + life_ms, ticket_id)
