"""Visitors who may close the page, for analytics: their place is abandoned when it can no longer be
taken up, not when check-ins stop. No decision depends on it; a restart forgets it.
"""

ABSENT_MAX = 100_000
"""Per ledger, about 15 MB; further places count as abandoned at once."""


class AbsentVisitors:
    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[bytes, int] = {}
        """Id -> 0 while in line, else the key of the place left."""

    def mark(self, ticket_id: bytes) -> None:
        if len(self.rows) < ABSENT_MAX:
            self.rows.setdefault(ticket_id, 0)

    def lose(self, ticket_id: bytes, key: int) -> bool:
        """Returns whether this place, which has left the line, may still be taken up."""
        known = ticket_id in self.rows
        if known:
            self.rows[ticket_id] = key
        return known

    def rename(self, old: bytes, new: bytes) -> None:
        if old in self.rows:
            self.rows[new] = self.rows.pop(old)

    def end(self, key: int) -> int:
        """Forgets places up to this key, which are lost for good; returns how many."""
        ended = [ticket_id for ticket_id, lost in self.rows.items() if 0 < lost <= key]
        for ticket_id in ended:
            del self.rows[ticket_id]
        return len(ended)
