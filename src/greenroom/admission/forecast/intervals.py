"""Quantiles of waits, learnt from earlier forecasts: adaptive conformal inference.

Theory. A 75 % quantile is right if three in four are in by then. When its time comes, the share that
is in narrows the width if it was more and widens it if it was less. So for any distribution of errors
widths drift to where the share is nominal. Widths are logarithms of factors on the median. There is
a set of widths for each of LEADS_S, because short waits are surer; a wait between two sets uses their
weighted mean, and teaches both by weight. A set that has learnt nothing has half the next shorter
one's widths: errors grow with the root of the time, and each lead is four times the one before.

A *pending forecast* is for the arrivals of one second. When each quantile has come, it is judged by
how many of them are still in line.
"""

from collections.abc import Callable, Iterator
from math import exp

from greenroom.admission.messages.wait_table import (
    LEADS_S,
    OFFSET_S,
    SHARES,
    WIDEST,
    Widths,
    place_of,
)

FIRST: Widths = (-0.035, 0.0, 0.035, 0.4)
"""For the shortest waits: half of them within 3.5 %."""
LEAST = 0.002
"""Of a quartile from the median. The median stays: `track` corrects its errors at once, and a second
correction a whole wait later would make it swing.
"""
STEP = 0.5
"""Widths move by factors, so learning is as quick for forecasts good to 1 % as for 50 %."""
TOP, CAUTION = 3, 4.0
"""The last quantile widens this much faster than it narrows: late costs more trust than early."""
TAUGHT = 0.2
"""Least weight by which a wait counts as having taught a set."""
FURTHER = 0.5
"""Quartile widths of the next longer set, before it has learnt anything."""
EARLY_S = 1.0
"""Half of the time between two judgements."""
LATEST_S = EARLY_S + 0.001
"""Not due by then, however factors are rounded."""
PROBES_MAX = 2_000


class PendingForecast:
    __slots__ = ("judged", "made_ms", "place", "second", "standing", "wait_s")

    def __init__(self, second: int, made_ms: int, wait_s: float, standing: float) -> None:
        self.second = second
        self.made_ms = made_ms
        self.wait_s = wait_s
        self.place = place_of(wait_s)
        self.standing = standing
        self.judged = 0
        """Number of SHARES judged."""


class Intervals:
    __slots__ = ("_front_s", "_probes", "_taught", "_widths")

    def __init__(self) -> None:
        self._widths = [list(FIRST) for _ in LEADS_S]
        self._inherit(0)
        self._taught = [False for _ in LEADS_S]
        self._probes: list[PendingForecast] = []
        self._front_s = 0

    @property
    def widths(self) -> tuple[Widths, ...]:
        return tuple([(low, middle, high, top) for low, middle, high, top in self._widths])

    def expect(self, second: int, made_ms: int, wait_s: float, standing: float) -> None:
        if len(self._probes) < PROBES_MAX:
            self._probes.append(PendingForecast(second, made_ms, wait_s, standing))

    def front_at(self, second: int) -> None:
        self._front_s = max(self._front_s, second)

    def judge(self, standing: Callable[[int], int], giving_up_per_s: float, seen_ms: int) -> None:
        """`standing`: visitors of an arrival second still in line at `seen_ms`."""
        soonest = self._soonest()
        for probe in self._probes:
            passed_s = (seen_ms - probe.made_ms) / 1000
            if (probe.wait_s + OFFSET_S) * soonest[probe.judged] - OFFSET_S > passed_s + LATEST_S:
                continue
            while probe.judged < len(SHARES):
                which, (index, part) = probe.judged, probe.place
                less, more = self._widths[index][which], self._widths[index + 1][which]
                if (probe.wait_s + OFFSET_S) * exp(
                    less + part * (more - less)
                ) - OFFSET_S > passed_s + EARLY_S:
                    break
                probe.judged += 1
                there = probe.standing * exp(-giving_up_per_s * passed_s)
                self._learn(
                    index,
                    part,
                    which,
                    1 - min(1.0, standing(probe.second) / there) if there > 0 else 1.0,
                )
                soonest = self._soonest()
        self._probes = [probe for probe in self._probes if probe.judged < len(SHARES)]

    def _soonest(self) -> list[float]:
        """For each of SHARES, the least factor on a median over all waits."""
        return [exp(min(column)) for column in zip(*self._widths, strict=True)]

    def forget(self) -> None:
        self._probes.clear()
        self._front_s = 0

    def open(self) -> Iterator[PendingForecast]:
        return (probe for probe in self._probes if probe.second > self._front_s)

    def _learn(self, index: int, part: float, which: int, share: float) -> None:
        for lead, weight in ((index, 1 - part), (index + 1, part)):
            learn(self._widths[lead], which, share, weight)
            self._taught[lead] |= weight >= TAUGHT
        self._inherit(
            max([lead for lead in range(len(LEADS_S)) if self._taught[lead]], default=index)
        )

    def _inherit(self, newest: int) -> None:
        for further in range(newest + 1, len(LEADS_S)):
            low, middle, high, top = self._widths[further - 1]
            self._widths[further][:] = (
                min(-LEAST, low * FURTHER),
                middle,
                max(LEAST, high * FURTHER),
                top,
            )


def learn(widths: list[float], which: int, share: float, weight: float = 1.0) -> None:
    """Moves one width, within bounds that keep quantiles in order. `weight`: 0 to 1."""
    outward = SHARES[which] - share
    if which == TOP and outward > 0:
        outward *= CAUTION
    widths[which] *= exp(STEP * weight * (outward if widths[which] > 0 else -outward))
    low, _, high, top = widths
    high = min(WIDEST - LEAST, max(LEAST, high))
    widths[:] = max(-WIDEST, min(-LEAST, low)), 0.0, high, min(WIDEST, max(high + LEAST, top))
