"""Other laws for the limits of a room, to compare with: each has `step(window, now_ms) -> CapacityTarget`.

Vegas and Gradient2 as in Netflix's concurrency-limits, with sessions for requests; AIMD on the
admission rate, as operators would write it.
"""

from math import log10
from typing import Protocol

from greenroom.capacity import WINDOW_MS, CapacityTarget, OperatorLimits, Window

FEW = 10
"""Documents in a window without which a law keeps its limit."""


class Law(Protocol):
    def step(self, window: Window | None, now_ms: int) -> CapacityTarget: ...


class Fixed:
    """The same limit all the time."""

    def __init__(self, bounds: OperatorLimits, sessions: int) -> None:
        self._target = CapacityTarget(sessions, bounds.new_users_per_minute, sessions, "fixed")

    def step(self, window: Window | None, now_ms: int) -> CapacityTarget:  # noqa: ARG002
        return self._target


class Aimd:
    """The admission rate: +2 % of the first a window while p95 is under the objective, or half."""

    def __init__(self, bounds: OperatorLimits, per_minute: int) -> None:
        self._bounds, self._step = bounds, per_minute * 0.02
        self._rate = float(per_minute) * 0.2
        self._halved_ms = 0

    def step(self, window: Window | None, now_ms: int) -> CapacityTarget:
        if window and window.documents.total + window.failed >= FEW:
            slow = window.documents.quantile_ms(0.95) > self._bounds.objective_ms
            if slow or window.failed > 0.01 * window.documents.total:
                if now_ms - self._halved_ms >= 6 * WINDOW_MS:
                    self._rate, self._halved_ms = max(1.0, self._rate / 2), now_ms
            else:
                self._rate += self._step
        self._rate = min(self._rate, float(self._bounds.new_users_per_minute))
        most = self._bounds.total_active_users
        return CapacityTarget(most, int(self._rate), most, "AIMD")


class Gradient2:
    """The ratio of a long average of latency to the current one, tolerance 1.5, smoothing 0.2."""

    def __init__(self, bounds: OperatorLimits) -> None:
        self._bounds, self._limit, self._long_ms = bounds, float(bounds.floor), 0.0

    def step(self, window: Window | None, now_ms: int) -> CapacityTarget:  # noqa: ARG002
        if window and window.documents.total >= FEW:
            mean_ms = window.documents.mean_ms
            self._long_ms += (mean_ms - self._long_ms) * (0.02 if self._long_ms else 1.0)
            if self._long_ms / mean_ms > 2:
                self._long_ms *= 0.95
            if window.active >= self._limit / 2:
                gradient = max(0.5, min(1.0, 1.5 * self._long_ms / mean_ms))
                wanted = self._limit * gradient + self._limit**0.5
                self._limit += 0.2 * (wanted - self._limit)
        return _at_most(self._bounds, self._limit, "Gradient2")


class Vegas:
    """The queue that the lowest latency ever seen implies, kept between 3 and 6 log10(limit)."""

    def __init__(self, bounds: OperatorLimits) -> None:
        self._bounds, self._limit, self._least_ms = bounds, float(bounds.floor), 0.0

    def step(self, window: Window | None, now_ms: int) -> CapacityTarget:  # noqa: ARG002
        if window and window.documents.total >= FEW:
            mean_ms = window.documents.mean_ms
            self._least_ms = min(self._least_ms or mean_ms, mean_ms)
            queue = self._limit * (1 - self._least_ms / mean_ms)
            step = max(1.0, log10(self._limit))
            if window.failed:
                self._limit -= step
            elif window.active >= self._limit / 2:
                self._limit += step if queue < 3 * step else -step if queue > 6 * step else 0
        return _at_most(self._bounds, self._limit, "Vegas")


def _at_most(bounds: OperatorLimits, limit: float, name: str) -> CapacityTarget:
    sessions = max(bounds.floor, min(bounds.total_active_users, int(limit)))
    return CapacityTarget(sessions, bounds.new_users_per_minute, sessions, name)
