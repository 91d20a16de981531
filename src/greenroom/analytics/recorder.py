"""Counts what happens in this process, one minute at a time. Call `close` before the first decision
at or after `ends_ms` is counted. When the clock jumps back the open minute stays open, so no minute
is reported twice. Minutes that are not fetched in time are dropped, oldest first.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from greenroom.analytics.histogram import HistogramCounts, record
from greenroom.analytics.rollup import (
    MINUTE_MS,
    SLOT_MS,
    SLOTS,
    GaugeTrack,
    Part,
    Rollup,
    RoomLimits,
    RoomTarget,
)

MINUTES_KEPT = 60
"""About 1 MB each with 1,000 busy rooms."""

NOT_WAITED = -1


class RoomMinute:
    __slots__ = ("active", "limits", "origin", "outcomes", "queued", "target", "wait_s", "waited")

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self.waited: HistogramCounts = {}
        self.origin: HistogramCounts = {}
        self.limits: RoomLimits | None = None
        self.target: RoomTarget | None = None
        self.active = [-1] * SLOTS
        self.queued = [-1] * SLOTS
        self.wait_s = [-1] * SLOTS

    def rollup(self, data_center: str) -> Rollup:
        looked = any(value != -1 for value in self.active)
        tracks = (
            {data_center: GaugeTrack(tuple(self.active), tuple(self.queued), tuple(self.wait_s))}
            if looked
            else {}
        )
        return Rollup(
            self.outcomes, tracks, self.limits, self.waited, self.origin, target=self.target
        )


class ClosedMinute:
    """Immutable: another thread may make its messages."""

    __slots__ = ("_data_center", "_rooms", "_source", "minute")

    def __init__(
        self, source: str, data_center: str, minute: int, rooms: Mapping[str, RoomMinute]
    ) -> None:
        self.minute = minute
        self._source = source
        self._data_center = data_center
        self._rooms = rooms

    def parts(self) -> Iterator[Part]:
        for room_id, room in self._rooms.items():
            yield Part(self._source, self.minute, room_id, room.rollup(self._data_center))

    def written(self) -> None: ...


class Recorder:
    """Not thread-safe."""

    def __init__(self, source: str, data_center: str, now_ms: int) -> None:
        """`source` must be new at each start of the process."""
        self.source = source
        self.data_center = data_center
        self.dropped_minutes = 0
        self._closed: deque[ClosedMinute] = deque()
        self._taken: Callable[[], Iterable[tuple[str, str, int]]] = tuple
        self._begin(now_ms // MINUTE_MS)

    def takes(self, added: Callable[[], Iterable[tuple[str, str, int]]]) -> None:
        """(room, outcome, number since the last call)."""
        self._taken = added

    # -- what happens ------------------------------------------------------------------------------

    def decided(self, room_id: str, outcome: str, now_ms: int, waited_ms: int = NOT_WAITED) -> None:
        """`waited_ms`: for visitors admitted from the line."""
        self.counted(room_id, outcome, 1, now_ms)
        if waited_ms >= 0:
            self.waited(room_id, waited_ms, now_ms)

    def waited(self, room_id: str, waited_ms: int, now_ms: int) -> None:
        record(self._room(room_id, now_ms).waited, waited_ms)

    def counted(self, room_id: str, outcome: str, count: int, now_ms: int) -> None:
        if count:
            outcomes = self._room(room_id, now_ms).outcomes
            outcomes[outcome] = outcomes.get(outcome, 0) + count

    def stayed(self, room_id: str, times_ms: Iterable[int], now_ms: int) -> None:
        origin = self._room(room_id, now_ms).origin
        for time_ms in times_ms:
            record(origin, time_ms)

    def looked(
        self, room_id: str, active: int, queued: int, wait_s: int | None, now_ms: int
    ) -> None:
        """`wait_s` None: not known."""
        room = self._room(room_id, now_ms)
        slot = max(0, min(SLOTS - 1, (now_ms - self._minute * MINUTE_MS) // SLOT_MS))
        room.active[slot] = max(room.active[slot], active)
        room.queued[slot] = max(room.queued[slot], queued)
        if wait_s is not None:
            room.wait_s[slot] = max(room.wait_s[slot], wait_s)

    def limited(self, room_id: str, limits: RoomLimits) -> None:
        """The last ones of a minute count."""
        self._room(room_id, limits.at_ms).limits = limits

    def targeted(self, room_id: str, target: RoomTarget) -> None:
        room = self._room(room_id, target.at_ms)
        room.target = target if room.target is None else room.target + target

    # -- minutes -----------------------------------------------------------------------------------

    def close(self, now_ms: int) -> None:
        minute = now_ms // MINUTE_MS
        if minute <= self._minute:
            return
        self._put_away()
        self._begin(minute)

    def finish(self) -> None:
        self._put_away()
        self._begin(self._minute + 1)

    def fetch(self) -> list[ClosedMinute]:
        closed = list(self._closed)
        self._closed.clear()
        return closed

    def give_back(self, minutes: Iterable[ClosedMinute]) -> None:
        self._closed.extendleft(reversed(list(minutes)))
        self._shorten()

    # -- inside ------------------------------------------------------------------------------------

    def _room(self, room_id: str, now_ms: int) -> RoomMinute:
        if now_ms >= self.ends_ms:
            self.close(now_ms)
        return self._open(room_id)

    def _open(self, room_id: str) -> RoomMinute:
        room = self._rooms.get(room_id)
        if room is None:
            room = self._rooms[room_id] = RoomMinute()
        return room

    def _begin(self, minute: int) -> None:
        self._minute = minute
        self.ends_ms = (minute + 1) * MINUTE_MS
        self._rooms: dict[str, RoomMinute] = {}

    def _put_away(self) -> None:
        for room_id, outcome, count in self._taken():
            outcomes = self._open(room_id).outcomes
            outcomes[outcome] = outcomes.get(outcome, 0) + count
        if self._rooms:
            self._closed.append(
                ClosedMinute(self.source, self.data_center, self._minute, self._rooms)
            )
            self._shorten()

    def _shorten(self) -> None:
        while len(self._closed) > MINUTES_KEPT:
            self._closed.popleft()
            self.dropped_minutes += 1
