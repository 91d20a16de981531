"""Requests in flight to one origin, for the bound that follows it (`capacity.in_flight`)."""

from bisect import bisect_left
from collections.abc import Mapping

from greenroom.capacity.histogram import BUCKETS, Histogram
from greenroom.capacity.in_flight import FlightLaw, FlightWindow
from greenroom.decision.verdict import Forward
from greenroom.gateway.documents import BOUNDS_S, is_document
from greenroom.model.visit import Arrival

FORGOTTEN = 12
"""Windows without documents after which a room no longer belongs to this origin."""


class Flights:
    def __init__(self) -> None:
        self.law = FlightLaw()
        self._rooms: dict[str, int] = {}
        """Windows since the last document, by room."""
        self.peak = self._failed = 0
        self._sum_s = 0.0
        self._counts = [0] * BUCKETS

    def answered(
        self, forward: Forward | None, arrival: Arrival, status: int, seconds: float, awaited: int
    ) -> None:
        """`seconds`: from the whole request to the first byte; `awaited`: requests in flight."""
        self.peak = max(self.peak, awaited)
        if forward is None or not is_document(forward, arrival):
            return
        self._rooms[forward.room_id] = 0
        if status < 500:
            self._counts[bisect_left(BOUNDS_S, seconds)] += 1
            self._sum_s += seconds
        else:
            self._failed += 1

    def step(
        self, objectives: Mapping[str, int], pending: Histogram, awaited: int, most: int
    ) -> int | None:
        """The new bound; None when a room that does not follow the origin sends documents too."""
        self.peak = max(self.peak, awaited)  # of an origin that hangs nothing was answered
        window = FlightWindow(
            documents=Histogram(tuple(self._counts), self._sum_s * 1000),
            pending=pending,
            failed=self._failed,
            peak=self.peak,
        )
        self._begin()
        self._rooms = {room: ago + 1 for room, ago in self._rooms.items() if ago < FORGOTTEN}
        if not self._rooms.keys() <= objectives.keys():
            self.law = FlightLaw()
            return None
        # What is fast enough for one room is not held for another, which wants it faster.
        objective_ms = max(objectives[room] for room in self._rooms or objectives)
        return self.law.step(window, objective_ms, most)

    def _begin(self) -> None:
        self.peak = self._failed = 0
        self._sum_s = 0.0
        self._counts = [0] * BUCKETS
