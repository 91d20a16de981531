"""Waits under the random method. With a(t) admissions per second out of n(t) present visitors, a
present visitor is in by t with probability 1 - exp(-H(t)), H being the integral of a / n, and n' =
joining - a - giving up * n. Newcomers keep joining as in the last minute; the excess over the last
ten fades. All who are present at one moment are alike, so one forecast is judged by all of them; a
width is a factor on the hazard.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from math import exp, log1p

from greenroom.admission.forecast.fluid import STEP_S
from greenroom.admission.messages.wait_table import (
    BELIEVED_S,
    HAZARDS,
    SHARES,
    TAIL_GROWTH,
    Widths,
    between,
    next_knot,
)

# Whether expected waits changed enough to tell visitors.

LEAST_S = 60.0
LEAST_PART = 0.25
AFTER_MS = 60_000
OLDEST_MS = 240_000


def drifted(expected_s: float, now_s: float) -> str:
    change_s = now_s - expected_s
    if abs(change_s) < max(LEAST_S, LEAST_PART * max(0.0, expected_s)):
        return ""
    return "slower" if change_s > 0 else "faster"


ALMOST = 0.999
NOTHING = 1e-9
"""Smaller hazards would be lost in sums, and the table must ascend."""
ENOUGH = 6.0
SOON_S = 60.0
"""Over this time the newest rate of joining gives way to the long-term one."""
TAIL_STEPS = 12
STEP = 0.1
WIDEST = 0.3
"""Keeps quantiles in order: their hazards are a factor of two apart, and exp(0.6) is less."""
COHORTS_MAX = 400

QuantileTable = tuple[tuple[float, ...], tuple[float, ...]]


def hazards(
    drawn: Sequence[float],
    present: float,
    joining_per_s: tuple[float, float],
    giving_up_per_s: float,
    learnt: bool,
) -> QuantileTable:
    """Both ascending; `drawn`: admissions per step, permit holders in the first. `joining_per_s`:
    recent and long-term.
    """
    lately = joining_per_s[0]
    whole = min(joining_per_s)
    total, count, knot = 0.0, max(1.0, present), 0.0
    people, seconds = [0.0], [0.0]
    for step, entering in enumerate(drawn, 1):
        joining = (whole + (lately - whole) * exp(-STEP_S * step / SOON_S)) * STEP_S
        count += joining / 2
        part = min(ALMOST, entering / count)
        count = max(1.0, (count - count * part) * (1 - giving_up_per_s * STEP_S) + joining / 2)
        hazard = -log1p(-part)
        if hazard > NOTHING:
            if total == people[-1] and seconds[-1] < STEP_S * (step - 1):
                total += NOTHING  # no draws for a while: the table is flat up to here
                people.append(total)
                seconds.append(STEP_S * (step - 1.0))
            total += hazard
            if step >= knot:
                people.append(total)
                seconds.append(STEP_S * float(step))
                knot = next_knot(step)
        if total >= ENOUGH:
            break
    if total > people[-1]:
        people.append(total)
        seconds.append(STEP_S * float(step))
    last = drawn[-TAIL_STEPS:]
    pace = sum(last) / len(last) / STEP_S / count
    while learnt and pace > NOTHING and total < ENOUGH and seconds[-1] < BELIEVED_S:
        ends_s = min(BELIEVED_S, max(seconds[-1], STEP_S) * TAIL_GROWTH)
        total += pace * (ends_s - seconds[-1])
        people.append(total)
        seconds.append(ends_s)
    return tuple(people), tuple(seconds)


class Cohort:
    __slots__ = ("count", "judged", "made_ms", "table")

    def __init__(self, made_ms: int, count: int, table: QuantileTable) -> None:
        self.made_ms = made_ms
        self.count = count
        self.table = table
        self.judged = 0


class LotteryForecast:
    __slots__ = ("_cohorts", "_widths")

    def __init__(self) -> None:
        self._widths = [0.0] * len(SHARES)
        self._cohorts: deque[Cohort] = deque(maxlen=COHORTS_MAX)

    @property
    def widths(self) -> tuple[Widths, ...]:
        p25, p50, p75, p95 = self._widths
        return ((p25, p50, p75, p95),)

    def expect(self, made_ms: int, count: int, table: QuantileTable) -> None:
        self._cohorts.append(Cohort(made_ms, count, table))

    def judge(self, seconds: Mapping[int, int], giving_up_per_s: float, now_ms: int) -> None:
        for cohort in self._cohorts:
            passed_s = (now_ms - cohort.made_ms) / 1000
            while cohort.judged < len(SHARES):
                which = cohort.judged
                at_s = between(*cohort.table, HAZARDS[which] * exp(self._widths[which]))
                if at_s is None or at_s > passed_s:
                    break
                cohort.judged += 1
                there = sum(
                    [count for second, count in seconds.items() if second * 1000 < cohort.made_ms]
                )
                left = min(1.0, there / (cohort.count * exp(-giving_up_per_s * passed_s)))
                width = self._widths[which] + STEP * (SHARES[which] - (1 - left))
                self._widths[which] = max(-WIDEST, min(WIDEST, width))
        while self._cohorts and self._cohorts[0].judged == len(SHARES):
            self._cohorts.popleft()

    def before(self, made_ms: int) -> Cohort | None:
        found = None
        for cohort in self._cohorts:
            if cohort.made_ms > made_ms:
                break
            found = cohort
        return found

    def forget(self) -> None:
        self._cohorts.clear()


def drift_of_draws(then: Cohort, table: QuantileTable, now_ms: int) -> str:
    passed_s = (now_ms - then.made_ms) / 1000
    gone = between(then.table[1], then.table[0], passed_s)
    expected_s = None if gone is None else between(*then.table, gone + HAZARDS[1])
    now_s = between(*table, HAZARDS[1])
    return "" if expected_s is None or now_s is None else drifted(expected_s - passed_s, now_s)
