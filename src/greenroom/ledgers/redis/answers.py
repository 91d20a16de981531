"""Questions and answers of one call for one room, as bytes. The wait table is read here, not in Lua:
it is decoded once for thousands of visitors.
"""

from collections.abc import Iterator, Mapping
from struct import Struct

from msgspec import msgpack

from greenroom.admission.estimate import AT_ONCE, exactly, random_estimate
from greenroom.admission.ledger.held import with_others
from greenroom.admission.ledger.waits import LINE_OVER_S, cut_off, not_before, whole_seconds
from greenroom.admission.messages.room_summary import Elsewhere, RoomSummary
from greenroom.admission.messages.wait_reader import WaitReader
from greenroom.admission.messages.wait_table import WaitTable
from greenroom.admission.queueing.line_table import table_of
from greenroom.model.line_table import LineTable
from greenroom.model.room import METHODS, Room
from greenroom.model.visit import Estimate, Outcome, Standing, arrival_ms_of

ARRIVE, POLL, PEEK, VIEW, LEAVE, VISIT, PASS, KEEP, MOVE, EXTEND, RECLAIM, FAIL, REENTER = range(
    1, 14
)

QUESTION = Struct("<B12sdQ")
"""Kind, ticket id, key, random bits. In a MOVE the key is 1 for `absent`, the random bits are the
nonce, and the new id follows."""
VISIT_MORE = Struct("<ddBB")
"""Last renewal, last page on trust, whether home is here, length of the home's name that follows."""
SETTINGS = Struct("<BBBBBIIIIIdB")
EXPECTED = Struct("<dd")
"""Expected time of the ledger, and its tolerance."""
_HEAD = Struct("<dddddddd")
_ANSWER = Struct("<BBddIIId")
_TABLE, _PLACE = Struct("<Bd"), Struct("<ddd")
_SHUT, _CONNECTED = 0, 1
_IN_LINE, _BORROWS, _UNTOLD, _CUT_OFF, _NEWCOMER, _CALLED, _ROOM, _SEARCHING = (
    1 << bit for bit in range(8)
)

_CONFIRMS: Mapping[bool | str, int] = {False: 0, True: 1, "auto": 2}
_SKETCHES = msgpack.Decoder(WaitTable)
_SUMMARIES = msgpack.Decoder(tuple[int, RoomSummary] | None)
_STANDINGS = (Standing.GONE, *Standing)
_WAITING, _GONE = Standing.WAITING, Outcome(Standing.GONE)
_OVER_FOR: Mapping[int, Outcome] = {
    0: _GONE,
    1: Outcome(Standing.GONE, kept_ms=1),
    2: Outcome(Standing.GONE, moved=True),
    3: Outcome(Standing.WAITING, storage_failed=True),
}
"""3: a move that is not possible now."""
_HELD, _OVER = int(Standing.WAITING), int(Standing.GONE)


def settings_of(room: Room) -> bytes:
    return SETTINGS.pack(
        METHODS.index(room.queueing_method), room.queue_all, _CONFIRMS[room.confirm_newcomers], not room.disable_session_renewal,
        room.strong_sessions, room.session_ms, room.renewal_age_ms, room.check_in_max_s, room.new_users_per_minute,
        room.total_active_users, room.sessions_ended_ms, room.claim_ms // 60_000,
    )  # fmt: skip


class Reader:
    __slots__ = (
        "_open",
        "_random",
        "_wait_reader",
        "elsewhere",
        "forecast",
        "line_ahead_ms",
        "now_ms",
        "on_line",
        "passes_left",
        "per_minute",
        "permits",
        "summary",
        "want",
    )  # fmt: skip

    def __init__(self, room: Room, on_line: bool = False) -> None:
        """`on_line`: times in outcomes are on the coordinator's clock."""
        self.on_line = on_line
        self._wait_reader = WaitReader()
        self.forecast = self.summary = 0
        """Numbers of the known ones."""
        self.elsewhere: Elsewhere | None = None
        self.now_ms = self.permits = self.want = 0
        """In the latest answer: the ledger's clock, unused permits, and permits to request."""
        self.passes_left = 0
        self.line_ahead_ms = 0
        self.per_minute: float | None = None
        self.configure(room)

    def configure(self, room: Room) -> None:
        self._random = room.queueing_method == "random"
        self._open = room.queueing_method != "reject" and not room.queue_all
        self._wait_reader.expect(self._random)

    def read(self, reply: bytes, forecast: bytes, summary: bytes) -> Iterator[tuple[Outcome, bool]]:
        """Outcomes, each with whether a permit request could help."""
        unseen = self._begin(reply, forecast, summary)
        elsewhere = self.elsewhere
        shift_ms = self.line_ahead_ms if self.on_line else 0
        for (
            standing,
            flags,
            first,
            second,
            refresh_ms,
            ahead,
            waiting,
            wait_s,
        ) in _ANSWER.iter_unpack(memoryview(reply)[_HEAD.size :]):
            if standing == _HELD:
                in_line = flags & _IN_LINE
                attempted_ms = int(first)
                position = ahead + 1 + (unseen if flags & _NEWCOMER else 0)
                estimate = (
                    None
                    if flags & _UNTOLD
                    or (
                        not ahead
                        and flags & (_NEWCOMER | _ROOM) == _NEWCOMER
                        and not self._wait_reader.current(self.now_ms)
                    )
                    else self._estimate(
                        position, waiting, int(second), wait_s, bool(flags & _CUT_OFF)
                    )
                )
                next_ms = (
                    attempted_ms + refresh_ms - self.now_ms
                    if in_line
                    else whole_seconds(refresh_ms)
                )
                outcome = Outcome(
                    _WAITING, 0, 0, attempted_ms + shift_ms, refresh_ms, ahead + 1 if in_line else 0, ahead, waiting,
                    not_before(next_ms, estimate), called=bool(flags & _CALLED),
                    searching=bool(flags & _SEARCHING),
                )  # fmt: skip
                if elsewhere is not None and not flags & _UNTOLD:
                    outcome = with_others(outcome, elsewhere, int(second), not flags & _CUT_OFF)
                yield outcome, bool(flags & _BORROWS)
            elif standing == _OVER:
                yield _OVER_FOR[ahead], False
            else:
                yield (
                    Outcome(
                        _STANDINGS[standing],
                        int(first) + shift_ms,
                        int(second) + shift_ms,
                        0,
                        refresh_ms,
                        kept_ms=ahead,
                    ),
                    False,
                )

    def line_table(self, reply: bytes, forecast: bytes, summary: bytes) -> LineTable:
        self._begin(reply, forecast, summary)
        standing, count = _TABLE.unpack_from(reply, _HEAD.size)
        rows = list(_PLACE.iter_unpack(memoryview(reply)[_HEAD.size + _TABLE.size :]))
        found = [(arrival_ms_of(int(key)), int(rank)) for key, rank, _ in rows]
        waits = {int(rank): (int(key), wait_s) for key, rank, wait_s in rows}
        due, places = (found[0], found[1:]) if count else (None, found)
        waiting = places[-1][1] + 1 if places else 0

        def estimate(ahead: int, _arrival_ms: int) -> Estimate | None:
            key, wait_s = waits[ahead]
            return self._estimate(ahead + 1, waiting, key, wait_s, standing != _CONNECTED)

        return table_of(
            places,
            waiting,
            standing != _SHUT,
            due,
            self.now_ms + self.line_ahead_ms,
            estimate,
            self.elsewhere,
        )

    def _begin(self, reply: bytes, forecast: bytes, summary: bytes) -> int:
        """Returns how many newcomers have not come back."""
        now_ms, permits, per_minute, line_ahead_ms, want, number, unseen, left = _HEAD.unpack_from(
            reply
        )
        self.now_ms, self.line_ahead_ms = int(now_ms), int(line_ahead_ms)
        self.permits, self.want = int(permits), int(want)
        self.passes_left, self.per_minute = int(left), None if per_minute < 0 else per_minute
        if forecast:
            self.forecast = int(number)
            self._wait_reader.take(
                _SKETCHES.decode(forecast), self.now_ms + self.line_ahead_ms, self.now_ms
            )
        if summary:
            found = _SUMMARIES.decode(summary)
            self.summary = found[0] if found else 0
            self.elsewhere = Elsewhere(found[1]) if found else None
        return int(unseen)

    def _estimate(
        self, position: int, waiting: int, key: int, wait_s: float, alone: bool
    ) -> Estimate | None:
        """`wait_s`: the server's estimate; below 0: none."""
        if not self._open:
            return None
        wait_reader = self._wait_reader
        if wait_s >= 0 and position <= self.permits and not self._random:
            return exactly(wait_s) if wait_s else AT_ONCE
        arrival_ms = arrival_ms_of(key)
        without, now_ms = position - self.permits, self.now_ms
        found = (
            wait_reader.random(arrival_ms, now_ms)
            if self._random
            else wait_reader.fifo(without, arrival_ms, now_ms)
        )
        if not alone and (found or wait_reader.decides) and wait_reader.age_s < LINE_OVER_S:
            return found
        if self._random:
            plain = random_estimate(max(position, waiting) - self.permits, self.per_minute)
        else:
            plain = None if wait_s < 0 else exactly(wait_s)
        return cut_off(plain, found, wait_reader.age_s) if alone else plain
