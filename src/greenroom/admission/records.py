"""What has to be remembered of a room, as records of 24 bytes: kind, ticket id, one number. A
record says what holds now, so reading it twice does no harm. A snapshot is between RESET and DONE;
one that was cut off before DONE never happened.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from struct import Struct

from greenroom.model.room import Room
from greenroom.model.visit import TICKET_ID_BYTES

NOTE = 0  # says nothing: a trial of the disk
PLACE = 1  # id, key: a place in line is real
ADMIT = 2  # id, time: let in; a session begins, and the sliding minute counts it
SESSION = 3  # id, time: a session was renewed (or is simply there)
END = 4  # id, time: place or session ended; the id is spent until then (0: not at all)
COUNTED = 5  # time: an admission of the sliding minute whose session may be over
RESET = 6  # a snapshot begins
DONE = 7  # a snapshot is whole: what stood before it is void
BEGAN = 8  # id, time: when a session began that is simply there
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
    """Sessions of older journals are not in it."""
    extended: dict[bytes, int] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)
    """Not voided by a snapshot: it has the newest of them."""
    failures: dict[bytes, int] = field(default_factory=dict)

    def replay(self, records: bytes, holes: bool = False) -> None:
        """Whole snapshots only. Raises ValueError unless their length fits; unknown kinds are
        skipped. With `holes` a snapshot without an end counts beside what stood before it: a
        session too many ends by itself, one too few lets a visitor in.
        """
        if len(records) % RECORD.size:
            raise ValueError(
                f"{len(records)} bytes are not a whole number of {RECORD.size}-byte records"
            )
        sessions, places, spent, window, began, extended, failures = self._kept
        latest_ms = self.latest_ms
        before: _Kept | None = None
        for kind, ticket_id, value in RECORD.iter_unpack(records):
            if kind == PLACE:
                places[ticket_id] = value
            elif kind == END:
                sessions.pop(ticket_id, None)
                began.pop(ticket_id, None)
                extended.pop(ticket_id, None)
                failures.pop(ticket_id, None)
                places.pop(ticket_id, None)
                if value:
                    spent[ticket_id] = value
            elif kind in (SESSION, ADMIT, COUNTED):
                latest_ms = max(latest_ms, value)
                if kind != COUNTED:
                    sessions[ticket_id] = value
                if kind != SESSION:
                    window.append(value)
                    places.pop(ticket_id, None)
                if kind == ADMIT:
                    began[ticket_id] = value
            elif kind == BEGAN:
                began[ticket_id] = value
            elif kind == EXTENDED:
                extended[ticket_id] = value
            elif kind == TURN:
                self.turns[_TURN_MS.unpack(ticket_id)[0]] = value
            elif kind == FAILED and value:
                failures[ticket_id] = value
                if value & FAILED_STATES == FAILED_USED:
                    spent.pop(ticket_id, None)
            elif kind == FAILED:
                failures.pop(ticket_id, None)
            elif kind == RESET:
                before = before or (sessions, places, spent, window, began, extended, failures)
                sessions, places, spent, window, began, extended, failures = (
                    {},
                    {},
                    {},
                    [],
                    {},
                    {},
                    {},
                )
            elif kind == DONE:
                before = None
        self.latest_ms = latest_ms
        found = sessions, places, spent, window, began, extended, failures
        if before:  # a snapshot has no end
            found = _joined(before, found) if holes else before
        self._kept = found

    @property
    def _kept(self) -> "_Kept":
        return (
            self.sessions, self.places, self.spent, self.window, self.began, self.extended, self.failures
        )  # fmt: skip

    @_kept.setter
    def _kept(self, found: "_Kept") -> None:
        (
            self.sessions, self.places, self.spent, self.window, self.began, self.extended, self.failures
        ) = found  # fmt: skip


_Kept = tuple[
    dict[bytes, int],
    dict[bytes, int],
    dict[bytes, int],
    list[int],
    dict[bytes, int],
    dict[bytes, int],
    dict[bytes, int],
]


def _joined(before: _Kept, after: _Kept) -> _Kept:
    """What stood before a snapshot without an end, and what is in it."""
    spent, sessions = after[2], after[0]
    sessions = {
        ticket_id: at_ms for ticket_id, at_ms in before[0].items() if ticket_id not in spent
    } | sessions
    places = {
        ticket_id: key
        for ticket_id, key in (before[1] | after[1]).items()
        if ticket_id not in sessions.keys() | spent.keys()
    }
    window = before[3] + after[3]
    return (
        sessions, places, before[2] | spent, window,
        before[4] | after[4], before[5] | after[5], before[6] | after[6],
    )  # fmt: skip


def remember(payloads: Iterable[bytes], holes: bool = False) -> LedgerMemory:
    """Oldest first; `holes` and errors as of `LedgerMemory.replay`."""
    memory = LedgerMemory()
    memory.replay(b"".join(payloads), holes)
    return memory


def stand_ins(lost: int, room: Room, now_ms: int, new_id: Callable[[], bytes]) -> list[bytes]:
    """Each may have been an admission or a renewal of a moment ago; of both no more than the limits
    allow.
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
