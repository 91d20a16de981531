"""The parts of one room's ledger. `Ledger` decides with them; `restoring`, `exchange` and
`transfers`, which decide nothing, work on this class.
"""

from greenroom.admission.lease import Lease
from greenroom.admission.ledger.absent import AbsentVisitors
from greenroom.admission.ledger.barred_places import MovingPlaces
from greenroom.admission.ledger.failures import Failures
from greenroom.admission.ledger.lookahead import Lookahead
from greenroom.admission.ledger.moving_turns import MovingTurns
from greenroom.admission.ledger.newcomers import Newcomers
from greenroom.admission.ledger.provisional import Provisional
from greenroom.admission.ledger.reporting import Reporting
from greenroom.admission.ledger.sessions import Sessions
from greenroom.admission.ledger.turns import Turns
from greenroom.admission.ledger.waits import Waits
from greenroom.admission.messages.line_counts import LineCounts
from greenroom.admission.messages.moves import Moves
from greenroom.admission.messages.room_summary import Elsewhere
from greenroom.admission.queueing.line import Line
from greenroom.admission.records import END, pack
from greenroom.model.room import Room


class LedgerState:
    def __init__(self, room: Room, data_center: str, epoch: int, now_ms: int) -> None:
        self.data_center = data_center
        self.epoch = epoch
        self.born_ms = now_ms
        self.empty_ms = now_ms
        """When it began without the state of an earlier one; 0: it has that."""
        self.all_ended_ms = 0
        """When an operator ended all sessions; 0: never."""
        self.life_ms = 0
        self.strong = room.strong_sessions
        self.renews = not room.disable_session_renewal
        self.halted = False
        self.lease = Lease()
        self.line = Line()
        self.waits = Waits(room, now_ms)
        self.lookahead = Lookahead(now_ms)
        self.elsewhere: Elsewhere | None = None
        self.sessions = Sessions(room.session_ms)
        self.failures = Failures()
        self.moving_turns = MovingTurns(self.failures, self._revive)
        self.moving_places = MovingPlaces()
        self.provisional = Provisional()
        self.newcomers = Newcomers()
        self.line_counts = LineCounts()
        self.moves = Moves()
        self.turns: Turns | None = None
        self.absent = AbsentVisitors()
        self.reporting = Reporting(now_ms)
        self.log: list[bytes] = []
        self._refresh_max_ms = room.check_in_max_s * 1000

    def line_ms(self, now_ms: int) -> int:
        """By the coordinator's clock, of which the keys of all data centers are made."""
        return now_ms + self.lease.line_ahead_ms

    @property
    def longest_refresh_ms(self) -> int:
        return self._refresh_max_ms * 11 // 10

    def see(self, ticket_id: bytes, now_ms: int) -> None:
        begun_ms = self.sessions.unshown.pop(ticket_id, None)
        if begun_ms is not None:
            self.newcomers.see(begun_ms, now_ms)

    def leave_line(self, ticket_id: bytes) -> bool:
        slot = self.line.slots.get(ticket_id, -1)
        if slot >= 0:
            self.line.remove(ticket_id)
            self.absent.rows.pop(ticket_id, None)
        return slot >= 0

    def drop_place(self, ticket_id: bytes) -> None:
        slot = self.line.slots[ticket_id]
        self.line_counts.place_lost(self.line.keys[slot], self.line.attempted[slot])
        self.leave_line(ticket_id)
        self.log.append(pack(END, ticket_id, 0))

    def living(self, ticket_id: bytes, now_ms: int) -> int | None:
        """The last renewal of a session, which is ended if its time is over."""
        renewed_ms = self.sessions.renewed(ticket_id)
        if renewed_ms is None or now_ms < renewed_ms + self.life_ms:
            return renewed_ms
        until_ms = self.sessions.end(ticket_id, now_ms)
        self.expired(ticket_id, until_ms, renewed_ms + self.life_ms, now_ms)
        return None

    def spend_of_copy(self, ticket_id: bytes, renewed_ms: int, now_ms: int) -> int:
        """As `Sessions.spend`, for a visitor who left or changed the id after this ledger began from
        an older copy: until every ticket from before that has expired.
        """
        if self.lease.doubts(now_ms):
            good_ms = self.sessions.last_seen_ms(self.lease.closing_until_ms)
            renewed_ms = max(renewed_ms, self.born_ms, good_ms)
        return self.sessions.spend(ticket_id, renewed_ms, now_ms)

    def _revive(self, ticket_id: bytes) -> None:
        """Unless the id moves or has moved, so its place is elsewhere."""
        barred = self.moving_places.barred.get(ticket_id)
        if barred is None or not barred.spent:
            self.sessions.revive(ticket_id)

    def expired(self, ticket_id: bytes, until_ms: int, ended_ms: int, now_ms: int) -> None:
        if self.provisional.since(ticket_id, self.born_ms):
            self.lease.free()
        else:
            self.lease.expire(now_ms)
        self.log.append(pack(END, ticket_id, until_ms))
        if self.failures.rows:
            self.log += self.failures.end(ticket_id, ended_ms)
