"""The wait shown to a visitor: the forecast, or the published formulas (`estimate`) without one. No
estimate is earlier than the next refresh. A data center that is cut off is assumed to repeat its
last minute.
"""

from collections.abc import Callable

from greenroom.admission import pacing
from greenroom.admission.estimate import (
    AT_ONCE,
    LONGEST_S,
    crowd_estimate,
    exactly,
    fifo_estimate,
    minute_estimate,
    random_estimate,
)
from greenroom.admission.lease import CUT_OFF_MS, Lease
from greenroom.admission.ledger.admission_rate import AdmissionRate
from greenroom.admission.messages.wait_reader import WaitReader
from greenroom.model.room import Room
from greenroom.model.visit import Estimate

LESS_WHEN_CUT_OFF, MORE_WHEN_CUT_OFF = 0.7, 1.4
"""Quartiles behind a cut, as factors on the wait by the own rate, from simulated partitions; the
second one squared for the 95th percentile.
"""

LINE_OVER_S = 10.0


class Waits:
    __slots__ = ("_minute_limit", "_per_minute", "_random", "admission_rate", "wait_reader")

    def __init__(self, room: Room, now_ms: int) -> None:
        self.admission_rate = AdmissionRate(now_ms)
        self.wait_reader = WaitReader()
        self._per_minute: float | None = None
        self.configure(room)

    def configure(self, room: Room) -> None:
        """Drops a forecast for another method."""
        self._minute_limit = room.new_users_per_minute
        self._random = room.queueing_method == "random"
        self.wait_reader.expect(self._random)

    def lookahead(self, now_ms: int, waiting: bool) -> None:
        self.admission_rate.mark(now_ms, waiting)
        self._per_minute = self.admission_rate.per_minute()

    def estimate(
        self, lease: Lease, position: int, waiting: int, arrival_ms: int, now_ms: int
    ) -> Estimate | None:
        """`position`: from 1 to `waiting`."""
        wait_reader, without, answered_ms = (
            self.wait_reader,
            position - lease.permits,
            lease.answered_ms,
        )
        if self._random:
            without = max(position, waiting) - lease.permits
            found = wait_reader.random(arrival_ms, now_ms)
        elif without <= 0:
            return exactly(paced_s) if (paced_s := lease.paced_s(position, now_ms)) else AT_ONCE
        else:
            found = wait_reader.fifo(without, arrival_ms, now_ms)
        if answered_ms is None or now_ms - answered_ms >= CUT_OFF_MS:  # it is not `connected`
            lease.trim(now_ms)
            return cut_off(
                self._formula(without, len(lease.window) if lease.disconnected_rate else 0),
                found,
                wait_reader.age_s,
            )
        if (found or wait_reader.decides) and wait_reader.age_s < LINE_OVER_S:
            return found
        if without <= lease.pool and lease.alone and not self._random:
            return minute_estimate(without, self._minute_limit, lease.window, now_ms)
        return self._of_a_crowd(lease, without, now_ms) or self._formula(without, self._per_minute)

    def _of_a_crowd(self, lease: Lease, without: int, now_ms: int) -> Estimate | None:
        """Without a forecast, where only the pace holds visitors back."""
        per_minute = pacing.part_per_minute(lease.gap_us, self._minute_limit, lease.data_centers)
        if (
            self._random
            or per_minute is None
            or without * self._minute_limit > lease.pool * per_minute
        ):
            return None
        lease.trim(now_ms)
        granted = crowd_estimate(without, lease.permits, per_minute, len(lease.window))
        # the pace holds back a permit that comes sooner
        paced_s = lease.paced_s(without + lease.permits, now_ms)
        return exactly(paced_s) if granted and granted.p50_s < paced_s else granted

    def of_places(
        self, lease: Lease, waiting: int, now_ms: int
    ) -> Callable[[int, int], Estimate | None]:
        return lambda ahead, arrival_ms: self.estimate(
            lease, ahead + 1, waiting, arrival_ms, now_ms
        )

    def _formula(self, without: int, per_minute: float | None) -> Estimate | None:
        formula = random_estimate if self._random else fifo_estimate
        return formula(without, per_minute)


def cut_off(alone: Estimate | None, forecast: Estimate | None, cut_s: float) -> Estimate | None:
    """By the own rate, or if sooner by the forecast from the end of the cut, which is assumed to last
    as long again.
    """
    over_s = cut_s + forecast.p50_s if forecast else LONGEST_S
    wait_s = min(alone.p50_s if alone else LONGEST_S, over_s)
    if wait_s >= LONGEST_S:
        return None
    p75_s = wait_s * MORE_WHEN_CUT_OFF
    return Estimate(wait_s * LESS_WHEN_CUT_OFF, wait_s, p75_s, p75_s * MORE_WHEN_CUT_OFF, "stale")


def whole_seconds(next_try_ms: int) -> int:
    """When a first page asks again: nobody is admitted sooner."""
    return -(-next_try_ms // 1000) * 1000


def not_before(next_try_ms: int, estimate: Estimate | None) -> Estimate | None:
    next_s = next_try_ms / 1000
    if estimate is None or estimate.p25_s >= next_s:
        return estimate
    return Estimate(
        next_s,
        max(next_s, estimate.p50_s),
        max(next_s, estimate.p75_s),
        max(next_s, estimate.most_s) if estimate.most_s else 0.0,
        estimate.change,
    )
