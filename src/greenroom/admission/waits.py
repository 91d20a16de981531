"""What a visitor is told about the wait: the forecast, and the published formulas while there is none.

Whoever has a permit waits for the next try only, and nobody is told to get in before the next try.
"""

from greenroom.admission.lease import Lease
from greenroom.admission.sketch import Outlook
from greenroom.admission.tempo import Tempo
from greenroom.core.estimate import AT_ONCE, fifo_estimate, minute_estimate, random_estimate
from greenroom.model.room import Room
from greenroom.model.visit import Estimate


class Waits:
    """What one ledger knows of waits in its room."""

    __slots__ = ("_minute_limit", "_per_minute", "_random", "outlook", "tempo")

    def __init__(self, room: Room, now_ms: int) -> None:
        self.tempo = Tempo(now_ms)
        self.outlook = Outlook()
        self._per_minute: float | None = None
        self.configure(room)

    def configure(self, room: Room) -> None:
        """New settings. A forecast made for another method is none for this one."""
        self._minute_limit = room.new_users_per_minute
        self._random = room.queueing_method == "random"
        self.outlook.expect(self._random)

    def look(self, now_ms: int, waiting: bool) -> None:
        """Time has passed; from now on somebody waits, or nobody does."""
        self.tempo.mark(now_ms, waiting)
        self._per_minute = self.tempo.per_minute()

    def estimate(self, lease: Lease, position: int, waiting: int, arrival_ms: int, now_ms: int) -> Estimate | None:
        """For whoever is (or would be) at `position` of `waiting`, counted from 1, and came at that moment of the line's clock."""
        outlook = self.outlook
        if self._random:
            found = outlook.random(arrival_ms, now_ms)
            if found or outlook.decides:
                return found
            return random_estimate(max(position, waiting) - lease.permits, self._per_minute)
        without = position - lease.permits
        if without <= 0:
            return AT_ONCE
        found = outlook.fifo(without, arrival_ms, now_ms)
        if found or outlook.decides:
            return found
        if without <= lease.pool and lease.alone:
            return minute_estimate(without, self._minute_limit, lease.window, now_ms)
        return fifo_estimate(without, self._per_minute)


def not_before(next_try_ms: int, estimate: Estimate | None) -> Estimate | None:
    """Nobody gets in before the next try, which is so far away."""
    next_s = next_try_ms / 1000
    if estimate is None or estimate.p25_s >= next_s:
        return estimate
    p25_s, p50_s, p75_s = max(next_s, estimate.p25_s), max(next_s, estimate.p50_s), max(next_s, estimate.p75_s)
    return Estimate(p25_s, p50_s, p75_s, max(next_s, estimate.most_s) if estimate.most_s else 0.0, estimate.change)
