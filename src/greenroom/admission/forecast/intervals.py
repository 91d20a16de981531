"""How wide an interval has to be, learnt from what came of earlier forecasts: adaptive conformal inference.

Theory. A quantile of 75 per cent is right if three in four waits stay below it. So each time it is seen to have held it is drawn in by a
quarter of a step, and each time it is seen to have failed it is pushed out by three quarters: wherever the forecast errs, by whatever
law, the widths drift to where the share that holds is the nominal one, and follow when the errors change. The widths are logarithms of
factors on the median, so one set serves many waits; waits of different length have sets of their own, because near ones are surer.

A *probe* is one forecast that is remembered: for whoever came in this second, this long from now. It is judged as soon as it can be: as
held when the front of the line gets there in time, as failed when the time is over. So a line that stops makes intervals wider at once.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from math import log

from greenroom.admission.messages.wait_table import LEADS_S, OFFSET_S, SHARES, WIDEST, Widths

FIRST: Widths = (-0.15, 0.0, 0.2, 0.5)
"""Before anything was learnt: within a sixth or a fifth half of the time."""
LEAST = 0.02
"""A quartile is at least this far from the median, which is not moved: what is wrong on the whole is scaled where it arises (`track`), at
once, and a second correction that comes a whole wait later makes it swing."""
STEP = 0.04
PROBES_MAX = 2_000
"""Probes kept at once: half an hour of them; more would only cost memory."""


class PendingForecast:
    """One forecast, waiting for what comes of it."""

    __slots__ = ("judged", "made_ms", "second", "wait_s")

    def __init__(self, second: int, made_ms: int, wait_s: float) -> None:
        self.second = second
        self.made_ms = made_ms
        self.wait_s = wait_s
        self.judged = 0
        """How many of SHARES have been judged."""


class Intervals:
    """Widths for a line, and the probes that teach them."""

    __slots__ = ("_probes", "_queue", "_widths")

    def __init__(self) -> None:
        self._widths = [list(FIRST) for _ in LEADS_S]
        self._probes: list[tuple[int, int, PendingForecast]] = []  # heap by second
        self._queue = 0

    @property
    def widths(self) -> tuple[Widths, ...]:
        """One for each of LEADS_S."""
        return tuple([(low, middle, high, top) for low, middle, high, top in self._widths])

    def expect(self, second: int, made_ms: int, wait_s: float) -> None:
        """Remembers a forecast for whoever came in this second."""
        if len(self._probes) < PROBES_MAX:
            self._queue += 1
            heappush(self._probes, (second, self._queue, PendingForecast(second, made_ms, wait_s)))

    def front_at(self, second: int, now_ms: int) -> None:
        """Whoever gets in now came in this second, so everybody who came in an earlier one is in or has given up."""
        while self._probes and self._probes[0][0] < second:
            self._judge(heappop(self._probes)[2], now_ms, True)

    def overdue(self, now_ms: int) -> None:
        """Judges what has failed already."""
        for _, _, probe in self._probes:
            self._judge(probe, now_ms, False)

    def forget(self) -> None:
        """The line is over, or follows other rules now: what was expected does not come."""
        self._probes.clear()

    def open(self) -> Iterator[PendingForecast]:
        """Forecasts that have not come true yet."""
        return (probe for _, _, probe in self._probes)

    def _judge(self, probe: PendingForecast, now_ms: int, entered: bool) -> None:
        took = log(((now_ms - probe.made_ms) / 1000 + OFFSET_S) / (probe.wait_s + OFFSET_S))
        widths = self._widths[lead(probe.wait_s)]
        for which in range(probe.judged, len(SHARES)):
            held = took <= widths[which]
            if held and not entered:
                return
            probe.judged += 1
            learn(widths, which, held)


def lead(wait_s: float) -> int:
    """The nearest of LEADS_S by its logarithm."""
    return sum(wait_s > edge * 2 for edge in LEADS_S[:-1])


def learn(widths: list[float], which: int, held: bool) -> None:
    """One judgement: the width drifts to where the nominal share holds, within bounds that keep quantiles in order."""
    widths[which] += STEP * (SHARES[which] - held)
    low, _, high, top = widths
    high = min(WIDEST - LEAST, max(LEAST, high))
    widths[:] = max(-WIDEST, min(-LEAST, low)), 0.0, high, min(WIDEST, max(high + LEAST, top))
