"""Whether a new visitor must show the ticket before being admitted (`confirm_newcomers = "auto"`).

Theory. *Unconfirmed* sessions, whose ticket has not come back, have a share of both limits:

- They hold at most one PART-th of `total_active_users`, and of the admissions of any 60 s at most
  one PART-th of `new_users_per_minute` (each at least 1).
- None gets the last free place of the room or the last admission of the minute, unless that limit
  is 1.

Each data center has an even part of the share. Sessions keep their duration: the parts of a page
may be outside the room, so an honest reader stays unconfirmed until the next click.
"""

from greenroom.admission.lease import WINDOW_MS, Lease
from greenroom.model.room import Room

SLOT_MS = 2_500
"""Width of the slots that count a minute's admissions; a slot counts until all of it is over 60 s
old.
"""

PART = 4

RING = WINDOW_MS // SLOT_MS + 1


class Newcomers:
    """`Sessions.unshown` has the unconfirmed sessions."""

    __slots__ = (
        "_always",
        "_minute",
        "_minute_limit",
        "_sent",
        "_sent_s",
        "_slot",
        "_slots",
        "_total_limit",
        "watches",
    )

    def __init__(self) -> None:
        self.watches = False
        self._always = False
        self._total_limit = self._minute_limit = 1
        self._slot = self._minute = 0
        self._slots = [0] * RING
        self._sent = self._sent_s = 0

    def configure(self, room: Room) -> None:
        self._always = room.confirm_newcomers is True
        self.watches = room.confirm_newcomers == "auto" and room.queueing_method != "passthrough"
        self._total_limit, self._minute_limit = room.total_active_users, room.new_users_per_minute
        if not self.watches:
            self._slots, self._minute = [0] * RING, 0

    def confirms(self, unshown: int, data_centers: int, now_ms: int) -> bool:
        """Whether newcomers must show their ticket now: always, or because the `unshown` sessions
        use up the share.
        """
        if not self.watches:
            return self._always
        self.turn(now_ms)
        parts = PART * data_centers
        return unshown >= max(1, self._total_limit // parts) or self._minute >= max(
            1, self._minute_limit // parts
        )

    def crowded(self, at_hand: int, now_ms: int) -> bool:
        """Counts a newcomer sent to show the ticket; returns whether this second has more of them
        than permits at hand.
        """
        if now_ms // 1000 != self._sent_s:
            self._sent_s, self._sent = now_ms // 1000, 0
        self._sent += 1
        return self._sent > at_hand

    def takes_the_last(self, lease: Lease, waiting: int, now_ms: int) -> bool:
        """Whether one more admission would use the last free place, or the minute's last admission,
        as far as this ledger knows.
        """
        if not self.watches:
            return False
        free = lease.permits + lease.freed + (lease.pool if lease.connected(now_ms) else 0)
        if self._total_limit > 1 and free <= waiting + 1:
            return True
        most = self._minute_limit - 1 - waiting
        if self._minute_limit == 1 or len(lease.window) < most:
            return False
        lease.trim(now_ms)
        return len(lease.window) >= most

    def admit(self, begun_ms: int) -> None:
        self._count(begun_ms, 1)

    def see(self, begun_ms: int, now_ms: int) -> None:
        """The ticket of a newcomer admitted then came back, or that admission was undone."""
        self.turn(now_ms)
        self._count(begun_ms, -1)

    def turn(self, now_ms: int) -> None:
        slot = now_ms // SLOT_MS
        for new in range(max(self._slot, slot - RING) + 1, slot + 1):
            self._minute -= self._slots[new % RING]
            self._slots[new % RING] = 0
        self._slot = max(self._slot, slot)

    def _count(self, begun_ms: int, change: int) -> None:
        slot = begun_ms // SLOT_MS
        if self.watches and self._slot - RING < slot <= self._slot:
            self._slots[slot % RING] += change
            self._minute += change
