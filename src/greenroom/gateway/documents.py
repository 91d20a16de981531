"""How fast origins answer the documents of admitted visitors, by room: the input of limits that
follow an origin. A document is what a visitor waits for with an empty screen.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Protocol

from greenroom.capacity.histogram import BOUNDS_MS, BUCKETS, Histogram
from greenroom.decision.verdict import Forward
from greenroom.gateway.request_span import RequestSpan
from greenroom.model.visit import Arrival
from greenroom.request.admissible import signs_in

BOUNDS_S = tuple(bound / 1000 for bound in BOUNDS_MS)

OF_ONE, OF_ONE_EACH_S, FAILED_OF_ONE_EACH_S = 3, 5.0, 16.0
"""How much one ticket counts towards a limit: OF_ONE documents at once, then one per OF_ONE_EACH_S
seconds, failures more rarely. Otherwise one visitor could move the limit.
"""


class RoomDocuments:
    __slots__ = ("counts", "failed", "judged", "sum_s", "traced")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        """Answers below 500, by time to the first byte."""
        self.sum_s = 0.0
        self.failed = 0
        """Answered with 5xx, or not at all."""
        self.traced: dict[int, tuple[RequestSpan, float, float]] = {}
        """Newest answer of each bucket: span, seconds, Unix time."""
        self.judged: JudgedDocuments | None = None
        """What the limit is computed from; None for a fixed limit."""

    def add(self, status: int, seconds: float) -> None:
        if status < 500:
            self.counts[bisect_left(BOUNDS_S, seconds)] += 1
            self.sum_s += seconds
        else:
            self.failed += 1

    @property
    def histogram(self) -> Histogram:
        return Histogram(tuple(self.counts), self.sum_s * 1000)


class JudgedDocuments(RoomDocuments):
    __slots__ = ("_before", "_now", "_until_s")

    def __init__(self) -> None:
        super().__init__()
        self._now: dict[int, tuple[float, float]] = {}
        """By ticket key (a move to another device keeps it): when the counted share is used up, and
        when a failure counts again.
        """
        self._before, self._until_s = self._now, 0.0

    def judge(self, key: int, status: int, seconds: float, now_s: float) -> None:
        """Ignores a ticket that has counted too often."""
        if now_s >= self._until_s:
            self._before, self._now = self._now, {}
            self._until_s = now_s + FAILED_OF_ONE_EACH_S
        known = self._now.get(key) or self._before.get(key)
        full_s, failed_s = known or (0.0, 0.0)
        if status >= 500:
            if now_s < failed_s:
                return
            failed_s = now_s + FAILED_OF_ONE_EACH_S
        else:
            full_s = max(full_s, now_s) + OF_ONE_EACH_S
            if full_s > now_s + OF_ONE * OF_ONE_EACH_S:
                return
        self._now[key] = full_s, failed_s
        self.add(status, seconds)


def is_document(forward: Forward, arrival: Arrival) -> bool:
    if forward.ticket is None or forward.provisional:
        return False
    return (arrival.signs or signs_in(arrival)).document


class Documents:
    def __init__(self) -> None:
        self._by_room: dict[str, RoomDocuments] = {}

    def answered(
        self,
        forward: Forward | None,
        arrival: Arrival,
        status: int,
        seconds: float,
    ) -> None:
        # As is_document, which would be a call more for each request.
        if forward is None or forward.ticket is None or forward.provisional:
            return
        if not (arrival.signs or signs_in(arrival)).document:
            return
        room = self._by_room.get(forward.room_id) or self._begin(forward.room_id)
        room.add(status, seconds)
        if room.judged is not None:
            room.judged.judge(forward.ticket.key, status, seconds, time.monotonic())

    def failed(self, forward: Forward | None, arrival: Arrival) -> None:
        """The origin refused or broke the connection, or timed out. Requests without a connection
        do not count: one client can use up its own share.
        """
        self.answered(forward, arrival, 502, 0.0)

    def trace(self, forward: Forward, arrival: Arrival, status: int, span: RequestSpan) -> None:
        room = self._by_room.get(forward.room_id)
        if room is None or status >= 500 or not span.first_byte_at:
            return
        if is_document(forward, arrival):
            seconds = span.first_byte_at - span.decided_at
            room.traced[bisect_left(BOUNDS_S, seconds)] = span, seconds, time.time()

    def of(self, room_id: str) -> RoomDocuments | None:
        return self._by_room.get(room_id)

    def judged(self, room_id: str) -> JudgedDocuments:
        """Collected from the first call on."""
        room = self._by_room.get(room_id) or self._begin(room_id)
        room.judged = room.judged or JudgedDocuments()
        return room.judged

    def keep(self, room_ids: set[str]) -> None:
        for room_id in self._by_room.keys() - room_ids:
            del self._by_room[room_id]

    def _begin(self, room_id: str) -> RoomDocuments:
        room = self._by_room[room_id] = RoomDocuments()
        return room


def ages_of(pending: Iterable[tuple[Forward, float]]) -> dict[str, Histogram]:
    """By room, only the oldest of each ticket; `pending` has ages in seconds."""
    oldest: dict[str, dict[int, float]] = {}
    for forward, seconds in pending:
        if forward.ticket is not None:
            ages = oldest.setdefault(forward.room_id, {})
            key, age_ms = forward.ticket.key, 1000 * seconds
            ages[key] = max(ages.get(key, 0.0), age_ms)
    return {room_id: Histogram.of(list(ages.values())) for room_id, ages in oldest.items()}


class SeesAnswers(Protocol):
    """What forwards requests and sees the answers: the gateway, or the middleware."""

    @property
    def documents(self) -> Documents: ...

    def pending_documents(self) -> dict[str, Histogram]:
        """Ages of unanswered documents of admitted visitors, by room; one per visitor."""

    def bound_in_flight(self, objectives: Mapping[str, int]) -> None:
        """Called once per window. `objectives`: milliseconds, for rooms that follow their origin."""
