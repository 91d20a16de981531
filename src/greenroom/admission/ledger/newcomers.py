"""Whether new visitors must show their ticket before they are let in, in a room that leaves that to its ledgers.

Theory (`confirm_newcomers = "auto"`). A request without cookies that asks for a page is let in while there is room, and takes a unit for a
whole session. A browser brings the ticket back within seconds; a flood of such requests never does, and would fill an empty room. So
each ledger counts first tickets by the time at which they were given, and of those the ones that came back. The confirmation step is on
while most of them have not come back, and only where those would use a part of the room that matters: a monitor in an empty room
changes nothing.

- On: of the tickets given PATIENCE_MS to WINDOW_MS ago, MOST_PERCENT were never shown, and at that rate their sessions would use one
  PART-th of either limit (at least FEWEST tickets). Each data center decides by what it sees itself, for an even part of the limits.
- While it is on the waiting page asks for the ticket: browsers bring it back after two seconds, and a flood does not.
- Off: fewer than FEW_PERCENT did not come back. If as many newcomers came as before, it was a false alarm: an application whose pages
  have no parts in the room, so that visitors show their ticket with the next page only. It is then trusted for TRUST_MS. If fewer
  came, the flood may only pause: it stays on until the sessions that the flood had got before are over. Else a flood that stops as soon as
  the step is on, and comes back when it is off, would fill the room: each time it gets what fits into PATIENCE_MS, for a whole session.
- Off, too, after that time, when so few newcomers came within QUIET_MS that they do not matter. If the flood only paused, it gets its
  part once more, but not twice at the same time.

The numbers were chosen by simulation (tests/simulation/test_flood_of_documents.py). No limit rests on any of this.
"""

from collections.abc import Iterator

from greenroom.admission.messages.census import SOON_MS
from greenroom.model.room import Room

SLOT_MS = 2_500
"""First tickets are counted by slots of this width."""

PATIENCE_MS = 5_000
"""A ticket that was given later may still come back with the parts of its page."""

WINDOW_MS = 60_000
"""Tickets that were given so long ago, and PATIENCE_MS, are not counted any more."""

QUIET_MS = 20_000
"""The step is no longer needed when so few came in this time."""

MOST_PERCENT, FEW_PERCENT = 60, 40
"""On at so many tickets that were not shown, off at so few."""

PART = 4
"""On where those that do not come back would hold one part in so many of either limit."""

FEWEST = 20
"""Fewer tickets say nothing."""

TRUST_MS = 600_000

_PATIENT = PATIENCE_MS // SLOT_MS
_SLOTS = WINDOW_MS // SLOT_MS
_QUIET = QUIET_MS // SLOT_MS
_RING = _SLOTS + _PATIENT + 1


class Newcomers:
    """Of one ledger. Times are its milliseconds."""

    __slots__ = (
        "_before", "_issued", "_least_ms", "_most", "_shown", "_since_ms", "_slot", "_trusted_ms", "_turns_ms", "_watches",
        "confirms", "unshown",
    )  # fmt: skip

    def __init__(self) -> None:
        self.confirms = False
        """Whether newcomers must show their ticket before they are let in."""
        self.unshown: dict[bytes, int] = {}
        """Ids that were let in at once and have not been seen since -> when; the oldest first, as far as they still count."""
        self._watches = False
        self._most = 0  # admissions of one window that would use up a limit
        self._least_ms = 0  # so long it stays on, unless it was a false alarm
        self._slot = self._turns_ms = 0
        self._issued, self._shown = [0] * _RING, [0] * _RING
        self._since_ms = self._trusted_ms = 0
        self._before = 0  # most newcomers of a slot when it was switched on

    def configure(self, room: Room, life_ms: int) -> None:
        """As the room says; `life_ms`: of a session. Where admissions have no limit there is nothing that could be used up."""
        watches = room.confirm_newcomers == "auto" and room.queueing_method != "passthrough"
        self._most = min(room.total_active_users * WINDOW_MS // life_ms, room.new_users_per_minute)
        self._least_ms = max(life_ms, WINDOW_MS + PATIENCE_MS)
        if not watches:
            self.confirms = room.confirm_newcomers is True
        elif not self._watches:
            self.confirms, self._trusted_ms = False, 0
            self._clear()
        self._watches = watches

    def hold(self, now_ms: int) -> None:
        """A newcomer got a ticket and the waiting page."""
        if self._watches:
            if now_ms >= self._turns_ms:
                self._turn(now_ms)
            self._issued[self._slot % _RING] += 1

    def admit(self, ticket_id: bytes, now_ms: int) -> None:
        """A newcomer got a ticket and was let in."""
        if self._watches:
            self.hold(now_ms)
            self.unshown[ticket_id] = now_ms

    def see(self, ticket_id: bytes, now_ms: int) -> None:
        """The visitor of a session was seen: perhaps for the first time."""
        issued_ms = self.unshown.pop(ticket_id, None)
        if self._watches and issued_ms is not None and issued_ms > now_ms - WINDOW_MS - PATIENCE_MS:
            self._show(issued_ms, now_ms)

    def join(self, issued_ms: int, now_ms: int) -> None:
        """A ticket that was given then takes a place: the first time, unless it was given long ago."""
        if self._watches and now_ms - issued_ms <= SOON_MS:
            self._show(issued_ms, now_ms)

    def _show(self, issued_ms: int, now_ms: int) -> None:
        self._turn(now_ms)
        slot = issued_ms // SLOT_MS
        at = slot % _RING
        if self._slot - _RING < slot <= self._slot and self._shown[at] < self._issued[at]:
            self._shown[at] += 1

    def look(self, data_centers: int, now_ms: int) -> None:
        """Time has passed. `data_centers`: how many share the limits."""
        oldest_ms = now_ms - WINDOW_MS - PATIENCE_MS
        while self.unshown:
            ticket_id = next(iter(self.unshown))
            if self.unshown[ticket_id] > oldest_ms:
                break
            del self.unshown[ticket_id]
        if not self._watches:
            return
        floor = max(FEWEST, self._most // (PART * data_centers))
        self._turn(now_ms)
        issued = shown = busiest = 0
        for at in self._judged(_SLOTS):
            issued, shown, busiest = (
                issued + self._issued[at],
                shown + self._shown[at],
                max(busiest, self._issued[at]),
            )
        absent = issued - shown
        if not self.confirms:
            if (
                absent >= floor
                and 100 * absent >= MOST_PERCENT * issued
                and now_ms >= self._trusted_ms
            ):
                self._switch(now_ms, busiest)
            return
        lasted = now_ms - self._since_ms >= self._least_ms
        if issued >= FEWEST and 100 * absent <= FEW_PERCENT * issued:
            if 2 * busiest >= self._before:
                self._trusted_ms = now_ms + TRUST_MS
                self._switch(now_ms, 0)
            elif lasted:
                self._switch(now_ms, 0)
        elif lasted and 2 * _SLOTS * self._absent_lately() < _QUIET * floor:
            self._switch(now_ms, 0)

    def _absent_lately(self) -> int:
        return sum(self._issued[at] - self._shown[at] for at in self._judged(_QUIET))

    def _judged(self, count: int) -> Iterator[int]:
        """Where the newest `count` slots are that are over and were patiently waited for."""
        return (
            slot % _RING for slot in range(self._slot - _PATIENT - count, self._slot - _PATIENT)
        )

    def _turn(self, now_ms: int) -> None:
        """Slots begin."""
        slot = now_ms // SLOT_MS
        for new in range(max(self._slot, slot - _RING) + 1, slot + 1):
            self._issued[new % _RING] = self._shown[new % _RING] = 0
        self._slot = max(self._slot, slot)
        self._turns_ms = (self._slot + 1) * SLOT_MS

    def _switch(self, now_ms: int, before: int) -> None:
        self.confirms = not self.confirms
        self._since_ms, self._before = now_ms, before
        self._clear()

    def _clear(self) -> None:
        self._issued, self._shown = [0] * _RING, [0] * _RING
