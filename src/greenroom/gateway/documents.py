"""How origins answer the documents of admitted visitors, by room: what limits that follow an origin
are found from. A document is what an admitted visitor waits for with an empty screen.
"""

import time
from bisect import bisect_left
from collections.abc import Mapping
from typing import Protocol

from greenroom.capacity.histogram import BOUNDS_MS, BUCKETS, Histogram
from greenroom.decision.verdict import Forward
from greenroom.gateway.request_span import RequestSpan
from greenroom.model.visit import Arrival
from greenroom.request.admissible import signs_in

BOUNDS_S = tuple(bound / 1000 for bound in BOUNDS_MS)


class RoomDocuments:
    __slots__ = ("counts", "failed", "sum_s", "traced")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        """Of answers below 500, by the time to the first byte."""
        self.sum_s = 0.0
        self.failed = 0
        """Answered with 5xx, or not at all."""
        self.traced: dict[int, tuple[RequestSpan, float, float]] = {}
        """The newest of `counts` by bucket: its seconds, and when (Unix)."""

    @property
    def histogram(self) -> Histogram:
        return Histogram(tuple(self.counts), self.sum_s * 1000)


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
        if status < 500:
            room.counts[bisect_left(BOUNDS_S, seconds)] += 1
            room.sum_s += seconds
        else:
            room.failed += 1

    def failed(self, forward: Forward | None, arrival: Arrival) -> None:
        """The origin refused or broke the connection, or took too long.

        A request that got no connection is not meant: one client can use up its own share of them.
        """
        self.answered(forward, arrival, 502, 0.0)

    def trace(self, forward: Forward, arrival: Arrival, status: int, span: RequestSpan) -> None:
        """Keeps a traced answer as the newest of its bucket."""
        room = self._by_room.get(forward.room_id)
        if room is None or status >= 500 or not span.first_byte_at:
            return
        if is_document(forward, arrival):
            seconds = span.first_byte_at - span.decided_at
            room.traced[bisect_left(BOUNDS_S, seconds)] = span, seconds, time.time()

    def of(self, room_id: str) -> RoomDocuments | None:
        return self._by_room.get(room_id)

    def keep(self, room_ids: set[str]) -> None:
        for room_id in self._by_room.keys() - room_ids:
            del self._by_room[room_id]

    def _begin(self, room_id: str) -> RoomDocuments:
        room = self._by_room[room_id] = RoomDocuments()
        return room


class SeesAnswers(Protocol):
    """What answers of origins pass through: the gateway, or the middleware."""

    @property
    def documents(self) -> Documents: ...

    def pending_documents(self) -> dict[str, Histogram]:
        """Ages of the documents of admitted visitors whose answer has not begun, by room."""

    def bound_in_flight(self, objectives: Mapping[str, int]) -> None:
        """Once a window, with the objectives of the rooms that follow their origin, in ms."""
