"""A room's stored state, as records of 24 bytes: kind, ticket id, one number. A record says what is
true now, so reading it twice does no harm. A snapshot lies between RESET and DONE; one without DONE
is void.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from struct import Struct

from greenroom.model.room import Room
from greenroom.model.visit import TICKET_ID_BYTES

NOTE = 0  # no content: a test of the disk
PLACE = 1  # id, key: a place in line is real
ADMIT = 2  # id, time: a session begins, and the sliding minute counts it
SESSION = 3  # id, time: last renewal of a session
END = 4  # id, time: place or session ended; the id is spent until then (0: not at all)
COUNTED = 5  # time: an admission of the sliding minute whose session may be over
RESET = 6  # a snapshot begins
DONE = 7  # a snapshot is complete: everything before it is void
BEGAN = 8  # id, time: when the session of a SESSION record began
EXTENDED = 9  # id, time: the last renewal of a session before it was given more time
TURN = 10  # time in the place of the id, key: the highest key admitted (`ledger.turns`)
FAILED = 11  # id, row of `ledger.failures`: the origin failed this visitor; 0: none

RECORD = Struct("<B3x12sQ")
NOBODY = bytes(TICKET_ID_BYTES)
FAILED_STATES, FAILED_USED = 3, 3  # the bits of FAILED that say what became of it
pack = RECORD.pack

_TURN_MS = Struct("<Q4x")


def pack_turn(at_ms: int, key: int) -> bytes:
    return pack(TURN, _TURN_MS.pack(at_ms), key)


@dataclass(slots=True)
class LedgerMemory:
    sessions: dict[bytes, int] = field(default_factory=dict)
    places: dict[bytes, int] = field(default_factory=dict)
    spent: dict[bytes, int] = field(default_factory=dict)
    window: list[int] = field(default_factory=list)
    latest_ms: int = 0
    began: dict[bytes, int] = field(default_factory=dict)
    """Without sessions of older journals."""
    extended: dict[bytes, int] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)
    """Not voided by a snapshot, which has only the newest."""
    failures: dict[bytes, int] = field(default_factory=dict)

    def replay(self, records: bytes, holes: bool = False) -> None:
        """Skips unknown kinds. ValueError: not a whole number of records.

        With `holes` a snapshot without an end is merged with what preceded it: a surplus session
        ends by itself, a missing one would admit a visitor too many.
        """
        if len(records) % RECORD.size:
            raise ValueError(
                f"{len(records)} bytes are not a whole number of {RECORD.size}-byte records"
            )
        now, before = replace(self), None
        for kind, ticket_id, value in RECORD.iter_unpack(records):
            if kind == RESET:
                before = before or now
                now = LedgerMemory(latest_ms=now.latest_ms, turns=now.turns)
            elif kind == DONE:
                before = None
            else:
                now._take(kind, ticket_id, value)
        if before:  # a snapshot has no end
            latest_ms, now = now.latest_ms, _joined(before, now) if holes else before
            now.latest_ms = latest_ms
        for one in fields(self):
            setattr(self, one.name, getattr(now, one.name))

    def _take(self, kind: int, ticket_id: bytes, value: int) -> None:
        if kind == PLACE:
            self.places[ticket_id] = value
        elif kind == END:
            for kept in (self.sessions, self.began, self.extended, self.failures, self.places):
                kept.pop(ticket_id, None)
            if value:
                self.spent[ticket_id] = value
        elif kind in (SESSION, ADMIT, COUNTED):
            self.latest_ms = max(self.latest_ms, value)
            if kind != COUNTED:
                self.sessions[ticket_id] = value
            if kind != SESSION:
                self.window.append(value)
                self.places.pop(ticket_id, None)
            if kind == ADMIT:
                self.began[ticket_id] = value
        elif kind == BEGAN:
            self.began[ticket_id] = value
        elif kind == EXTENDED:
            self.extended[ticket_id] = value
        elif kind == TURN:
            self.turns[_TURN_MS.unpack(ticket_id)[0]] = value
        elif kind == FAILED and value:
            self.failures[ticket_id] = value
            if value & FAILED_STATES == FAILED_USED:
                self.spent.pop(ticket_id, None)
        elif kind == FAILED:
            self.failures.pop(ticket_id, None)


def _joined(before: LedgerMemory, after: LedgerMemory) -> LedgerMemory:
    sessions = {
        ticket_id: at_ms
        for ticket_id, at_ms in before.sessions.items()
        if ticket_id not in after.spent
    } | after.sessions
    gone = sessions.keys() | after.spent.keys()
    places = {
        ticket_id: key
        for ticket_id, key in (before.places | after.places).items()
        if ticket_id not in gone
    }
    return LedgerMemory(
        sessions=sessions,
        places=places,
        spent=before.spent | after.spent,
        window=before.window + after.window,
        began=before.began | after.began,
        extended=before.extended | after.extended,
        turns=after.turns,
        failures=before.failures | after.failures,
    )


def remember(payloads: Iterable[bytes], holes: bool = False) -> LedgerMemory:
    """`payloads`: oldest first; `holes` and errors as in `LedgerMemory.replay`."""
    memory = LedgerMemory()
    memory.replay(b"".join(payloads), holes)
    return memory


def stand_ins(lost: int, room: Room, now_ms: int, new_id: Callable[[], bytes]) -> list[bytes]:
    """Records in place of `lost` ones, each of which may have been an admission or a renewal just
    now; of either no more than the limits allow.
    """
    sessions = min(lost, room.total_active_users)
    admissions = min(lost, room.new_users_per_minute)
    return [pack(SESSION, new_id(), now_ms) for _ in range(sessions)] + [
        pack(COUNTED, NOBODY, now_ms)
    ] * admissions


def snapshot(memory: LedgerMemory) -> Iterator[bytes]:
    yield pack(RESET, NOBODY, 0)
    for time_ms in memory.window:
        yield pack(COUNTED, NOBODY, time_ms)
    for kind, rows in (
        (END, memory.spent),
        (SESSION, memory.sessions),
        (BEGAN, memory.began),
        (EXTENDED, memory.extended),
        (FAILED, memory.failures),
        (PLACE, memory.places),
    ):
        for ticket_id, value in rows.items():
            yield pack(kind, ticket_id, value)
    for at_ms, key in memory.turns.items():
        yield pack_turn(at_ms, key)
    yield pack(DONE, NOBODY, 0)
