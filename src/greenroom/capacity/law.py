"""The law: a target of sessions from what the origin answers.

Theory. A waiting room steers people, not requests: who is inside stays for minutes, so a decrease
only stops the inflow, and a law that reacts to each slow second oscillates. Hence

- the measure is an absolute objective (p95 of documents): a learnt baseline drifts into an
  incident, and its probing needs an origin at rest;
- latency is counted from what it is at rest, whatever the load: between that and the objective lies
  the line before the origin, which is what admissions change. It shows in the mean too (Little's
  law), which is less noisy: a p95 that is high alone is no line;
- growth needs evidence: enough documents, a short line, while the limit binds;
- a cut is as large as the visitors that wait inside the origin beyond the objective (Little's law),
  and the next cut waits until the last one has taken effect;
- the place of the last cut is remembered. Near it the target is steered towards a line of WANTED in
  small steps: growth until the next cut would swing, and so would the crowd inside;
- what fails whatever the load, as documents of a broken partner do, keeps nobody out;
- whatever cannot be seen never makes the target grow.
"""

from collections import deque
from dataclasses import replace
from math import inf, sqrt

from greenroom.capacity.histogram import Histogram
from greenroom.capacity.window import WINDOW_MS, CapacityTarget, OperatorLimits, Window
from greenroom.model.fields import with_unit

QUANTILE = 0.95
VERY_SLOW, GROSS = 1.5, 2.5
"""Shares of the objective. VERY_SLOW counts in the newest windows alone; above GROSS admissions stop.
"""

GOOD, WANTED, EASY = 0.85, 0.7, 0.3
"""Shares of the way from the latency at rest to the objective: at most GOOD the target may grow,
WANTED is what it is steered to, and with less than EASY the capacity has grown."""

REST_MOST, REST_DRIFT = 0.8, 1.002
"""Latency at rest: largest share of the objective, and its growth in each window."""
MEAN_LINE, MEAN_OF_P95 = 0.2, 0.4
"""With a line that reaches the objective the mean is beyond rest by this share of the objective, at
most by that of what p95 is (a third with waits that are exponential).
"""

ERRORS_GOOD, ERRORS_BAD, ERRORS_GROSS = 0.002, 0.01, 0.05

GROWTH_A_MINUTE = 1.5

NEAR = 0.85
"""Share of the sessions at the last cut from which on the target is steered."""

GAIN, TRUSTED_S = 0.2, 60.0
"""Change a minute near it, for each share of the way off WANTED. With less than EASY for TRUSTED_S it
rises to GROWTH_A_MINUTE within the same time again."""

CERTAIN = 2.5
"""Standard deviations by which more than expected must be slow, or fail."""

CUT_LEAST, CUT_MOST, CUT_GROSS, CUT_FAILED = 0.03, 0.25, 0.25, 0.1
"""CUT_FAILED: an outage, in which what does not fail is fast, says little about the load, unless
there was one within FAILED_AGAIN_MS before."""
FAILED_AGAIN_MS = 180_000
CUT_GAIN = 1.1
"""Sessions cut for each document that waits too long: some of the visitors inside only read."""

MEAN_WANTED = 0.4
"""Share of the objective that the mean should have."""

SAMPLES_LEAST, SAMPLES_GROSS = 50, 10
"""Documents needed for a judgement, and for a gross failure in one window."""

WINDOWS, WINDOWS_MOST, FRESH = 6, 36, 0.5
"""A judgement is of the newest WINDOWS; of more where few come, and then growth is as much slower.
It grows only if the newest WINDOWS have FRESH of what is usual in them: silence is no evidence.
"""
SETTLED = 1.05
"""A cut has taken effect when at most this share of the target is inside."""
SETTLING_MS = 10_000
BINDS = 0.9
EASES, EASE_LEAST = 0.7, 0.2
"""Growth slows down from 1 - EASES of the way to the objective on, to EASE_LEAST."""
CALM_LEAST, CALM_MOST = 2, 12
"""Windows without failures before admissions go on: twice as many when the last ones were deceptive."""

PROBE_MS = 30_000
"""Without any document for this long, a stopped room admits a few visitors as a probe."""
PROBE_SHARE = 0.1
START_SHARE = 0.25
"""Of the operator's limit, where a law without a past begins."""
REFILL, REFILL_AFTER_GROSS = 1.0, 0.7
"""Share of a target that was cut once that may be admitted a minute, beyond those who replace who
left."""
RAMP, RAMP_INSIDE = 0.3, 1.5
"""Before the first cut: that share of the target, or of those inside."""
FAR, USELESS = 0.6, 0.8
"""Cut down to FAR while the latency is still USELESS of what it was: load is not the cause."""
FELL, SAME, FAILED_SAME, FELL_MS = 0.7, 0.85, 0.5, 600_000
SLOW_AT_REST, ABOVE_REST = 1.2, 1.25
"""The target fell to FELL within FELL_MS while p95 stayed SAME, at most SLOW_AT_REST of the objective:
that is the latency at rest. The objective counts as at least ABOVE_REST times that. With FAILED_SAME of
the highest share that failed, at most ERRORS_GROSS, this is what fails at rest.
"""
LEVEL_S = 60.0


class CapacityLaw:
    def __init__(self, bounds: OperatorLimits, sessions: int = 0, stopped_ms: int = 0) -> None:
        """`sessions`: where to begin, such as the visitors inside; 0: START_SHARE of the limit.
        `stopped_ms`: since when admissions are stopped, 0: they are not.
        """
        self.bounds = bounds
        self._goal = self._within(sessions or START_SHARE * bounds.total_active_users)
        self._told = self._goal
        """The goal, but it falls by at most CUT_MOST a step."""
        self._ease = 1.0
        """How fast admissions may go, by the distance to the objective."""
        self._recent: deque[Window] = deque(maxlen=WINDOWS_MOST)
        self._stepped_ms: int | None = None
        self._peak = 0.0
        """Sessions at the last cut, or those that were well since; 0 before the first."""
        self._cut_ms = 0
        self._easy_s = 0.0
        """How long the line has been short; what was near the objective halves it."""
        self._rest = self._rest_mean = 0.0
        """The lowest shares of the objective, of p95 and of the mean, forgotten slowly."""
        self._line = inf
        """What the mean has beyond its rest, as a share of MEAN_LINE; inf: it is not known."""
        self._objective = 1.0
        """Share of the objective that counts: more when the latency at rest misses it."""
        self._level = 0.0
        """Share of the objective, smoothed over LEVEL_S."""
        self._failing = self._failing_rest = 0.0
        """Share of documents that fail, smoothed as the level, and what of it is at rest."""
        self._fell_from = (0.0, 0.0, 0.0, 0)
        """Target, highest level since, highest share that failed since, and when."""
        self._cut_from = (0.0, 0.0)
        """Sessions and share of the objective at the first cut since all was well."""
        self._slow = self._calm = 0
        self._calm_least = CALM_LEAST
        self._stopped_ms, self._seen_ms = stopped_ms, 0
        """Since when nobody is admitted, 0: not; the last window with documents."""
        self._failed_ms = 0
        """When an outage last stopped admissions."""
        self._sudden = False
        """Admissions have just stopped; the target falls unless that is over in the next window."""
        self._refill = REFILL
        self._leaving = 0.0
        """Departures a second."""
        self._active, self._counted = 0, False
        """Sessions at the end of the last window, and whether it was the one before this."""
        self._last: CapacityTarget | None = None

    @property
    def stopped(self) -> bool:
        return self._stopped_ms > 0

    def configure(self, bounds: OperatorLimits) -> None:
        self.bounds = bounds
        self._goal, self._told = self._within(self._goal), self._within(self._told)
        if self._last is not None:
            sessions = int(self._within(self._last.sessions))
            per_minute = min(self._last.per_minute, bounds.new_users_per_minute)
            limit = min(self._last.limit, sessions)
            self._last = CapacityTarget(sessions, per_minute, limit, self._last.reason)

    def step(
        self, window: Window | None, now_ms: int, missing: str = "no measurements"
    ) -> CapacityTarget:
        """Call it once for each WINDOW_MS; None: measurements are `missing`."""
        since_ms = WINDOW_MS if self._stepped_ms is None else now_ms - self._stepped_ms
        passed_s = min(2 * WINDOW_MS, max(0, since_ms)) / 1000
        self._stepped_ms = now_ms
        if window is None or window.overloaded:
            self._recent.clear()
            self._slow = self._calm = 0
            self._counted = False
            why = missing if window is None else "greenroom itself is overloaded"
            held = self._last or self._target("")
            return replace(held, reason=f"{why}: {self._holds()}")
        self._recent.append(window)
        self._count_departures(window, passed_s)
        self._last = self._judge(window, now_ms, passed_s)
        return self._last

    def _judge(self, window: Window, now_ms: int, passed_s: float) -> CapacityTarget:
        if gross := self._gross(window):
            return self._stop(window, now_ms, gross)
        windows = self._windows()
        answered, failed = self._answered(windows)
        samples = answered.total + failed
        if window.documents.total + window.failed:
            self._seen_ms = now_ms
        if samples < SAMPLES_LEAST:
            self._slow = 0
            return self._too_few(samples, now_ms)
        errors = failed / samples
        last, _ = self._answered(max(2, windows * 2 // WINDOWS))
        share, last_share = self._share(answered), self._share(last)
        self._learn_line(answered, last, share, passed_s)
        self._learn_failing(errors, passed_s)
        failing = self._surely_fail(ERRORS_GOOD, failed, samples)
        self._learn_rest(now_ms, failing=failing)
        self._objective = max(1.0, ABOVE_REST * self._rest)
        highest = max(share, last_share)
        worst = self._way(highest)
        self._ease = min(1.0, max(EASE_LEAST, (1 - worst) / EASES))
        seen = self._seen(highest, errors)
        slow = self._surely_slower(answered, self._objective) and self._tail(last_share) > GOOD
        very_slow = self._surely_slower(last, VERY_SLOW * self._objective)
        if slow or very_slow or self._surely_fail(ERRORS_BAD, failed, samples):
            self._slow, self._calm = self._slow + 1, 0
            if self._slow < 2:
                return self._target(f"{seen} in one window: {self._holds()}", nobody=True)
            return self._cut(window, highest, now_ms, seen)
        self._slow = 0
        if worst <= GOOD < self._tail(highest):
            seen += " (the mean shows no line)"
        if self.stopped:
            self._calm += 1
            if self._calm < self._calm_least:
                return self._target(f"{seen}: admissions go on if it stays so")
            self._stopped_ms, self._refill = 0, REFILL_AFTER_GROSS
        newest, newest_failed = self._answered(WINDOWS)
        fresh = (newest.total + newest_failed) * max(windows, WINDOWS)
        if fresh < FRESH * samples * WINDOWS:
            return self._target(f"{seen}, but hardly a document comes now: {self._holds()}")
        passed_s *= min(1.0, WINDOWS / windows)
        return self._go_on(window, self._way(share), worst, passed_s, seen, failing=failing)

    def _learn_line(
        self, answered: Histogram, last: Histogram, share: float, passed_s: float
    ) -> None:
        """What p95 and the mean are at rest, and how long the mean shows the line to be."""
        mean, last_mean = (one.mean_ms / self.bounds.objective_ms for one in (answered, last))
        if len(self._recent) >= WINDOWS:
            most = max(REST_MOST, self._rest)
            self._rest = min(self._rest * REST_DRIFT or REST_MOST, share, most)
            drift = REST_DRIFT if self._tail(share) <= GOOD else 1.0
            self._rest_mean = min(self._rest_mean * drift or mean, mean)
        if self._rest_mean:
            most = min(MEAN_LINE, MEAN_OF_P95 * (self._objective - self._rest))
            self._line = (max(mean, last_mean) - self._rest_mean) / most
        self._level += (share - self._level) * (passed_s / LEVEL_S if self._level else 1.0)

    def _learn_failing(self, errors: float, passed_s: float) -> None:
        """What fails at rest, whatever the load: little at first, or as `_learn_rest` finds."""
        self._failing += (errors - self._failing) * passed_s / LEVEL_S
        if errors <= self._failing_rest + ERRORS_BAD and self._way(self._level) < EASY:
            self._failing_rest += ERRORS_GOOD * passed_s / LEVEL_S
        self._failing_rest = min(self._failing_rest, self._failing, ERRORS_GROSS)

    def _surely_fail(self, share: float, failed: int, total: int) -> bool:
        return more_than(share + self._failing_rest, failed, total)

    def _surely_slower(self, answered: Histogram, share: float) -> bool:
        """Whether more than 5 % took longer than this share of the objective, and not by chance."""
        chance = CERTAIN * sqrt(QUANTILE * (1 - QUANTILE) / max(1, answered.total))
        return answered.quantile_ms(max(0.0, QUANTILE - chance)) > share * self.bounds.objective_ms

    def _share(self, answered: Histogram) -> float:
        return answered.quantile_ms(QUANTILE) / self.bounds.objective_ms

    def _tail(self, share: float) -> float:
        """Where this share of the objective is between rest, 0, and the objective, 1."""
        return (share - self._rest) / (self._objective - self._rest)

    def _way(self, share: float) -> float:
        """How long the line is: both p95 and the mean must show it."""
        return min(self._line, self._tail(share))

    def _learn_rest(self, now_ms: int, *, failing: bool) -> None:
        """Far fewer visitors, and the same latency or share that fails: load is not the cause."""
        goal, level, failed, since_ms = self._fell_from
        if not goal or self._goal >= goal or now_ms - since_ms > FELL_MS:
            self._fell_from = (self._goal, self._level, self._failing, now_ms)
            return
        level, failed = max(level, self._level), max(failed, self._failing)
        self._fell_from = (goal, level, failed, since_ms)
        if self._goal >= FELL * goal:
            return
        if failing and self._way(self._level) <= GOOD and self._failing > FAILED_SAME * failed:
            self._failing_rest = min(self._failing, ERRORS_GROSS)
        elif (
            SAME * level < self._level < SLOW_AT_REST
            and not failing
            and self._tail(self._level) > WANTED
        ):
            self._rest, self._rest_mean, self._line = self._level, 0.0, inf
        else:
            return
        self._fell_from = (0.0, 0.0, 0.0, 0)
        self._peak = max(self._peak, goal)

    # -- what is seen ------------------------------------------------------------------------------

    def _gross(self, window: Window) -> str:
        """Why admissions must stop at once; empty when not."""
        answered = window.documents + window.pending.slower_than(self.bounds.objective_ms)
        total = answered.total + window.failed
        if not total:
            return ""
        errors = window.failed / total
        if window.failed > 1 and self._surely_fail(ERRORS_GROSS, window.failed, total):
            return self._seen(0, errors)
        if total >= SAMPLES_GROSS and self._surely_slower(answered, GROSS):
            return self._seen(self._share(answered), errors)
        return ""

    def _windows(self) -> int:
        """How many of the newest have enough documents together."""
        samples = 0
        for number, window in enumerate(reversed(self._recent), 1):
            samples += window.documents.total + window.failed
            if number >= WINDOWS and samples >= SAMPLES_LEAST:
                return number
        return len(self._recent)

    def _answered(self, windows: int) -> tuple[Histogram, int]:
        """The newest windows together, with what is still unanswered, and how many failed."""
        found = self._recent[-1].pending.slower_than(self.bounds.objective_ms)
        failed = 0
        for window in list(self._recent)[-windows:]:
            found, failed = found + window.documents, failed + window.failed
        return found, failed

    def _count_departures(self, window: Window, passed_s: float) -> None:
        if self._counted and passed_s:
            left = max(0, self._active + window.admitted - window.active)
            self._leaving += (left / passed_s - self._leaving) * min(1.0, passed_s / 30)
        self._active, self._counted = window.active, True

    def _seen(self, share: float, errors: float) -> str:
        objective = self.bounds.objective_ms / 1000
        near = self._tail(share) > GOOD
        beyond = errors - self._failing_rest
        if beyond > ERRORS_BAD or (beyond > ERRORS_GOOD and not near):
            return f"{100 * errors:.1f} % of documents failed"
        p95 = f"p95 of documents {share * objective:.2f} s"
        where = "over" if share > self._objective else "near" if near else "under"
        if self._objective > 1:
            raised_s = self._objective * objective
            return f"{p95} {where} {raised_s:.2f} s ({ABOVE_REST:g} times the latency at rest)"
        return f"{p95} {where} the objective of {objective:g} s"

    # -- what follows ------------------------------------------------------------------------------

    def _stop(self, window: Window, now_ms: int, seen: str) -> CapacityTarget:
        self._slow, self._calm, self._seen_ms = 0, 0, now_ms
        newest, _ = self._answered(2)
        self._recent.clear()  # of what comes after it, this says nothing
        if not self.stopped:
            self._stopped_ms, self._sudden = now_ms, True
            return self._target(f"{seen}: admissions stop")
        if not self._sudden:
            return self._target(f"{seen}: admissions are stopped")
        before = self._shown
        fast = newest.quantile_ms(QUANTILE) <= self.bounds.objective_ms
        again = now_ms - self._failed_ms <= FAILED_AGAIN_MS
        alone = fast and not again
        self._calm_least = min(CALM_MOST, 2 * self._calm_least) if again else CALM_LEAST
        if fast:
            self._failed_ms = now_ms
        self._reduce(window, CUT_FAILED if alone else CUT_GROSS, now_ms)
        return self._target(f"{seen} in two windows: {self._moved(before)}")

    def _cut(self, window: Window, share: float, now_ms: int, seen: str) -> CapacityTarget:
        if self._cut_ms and (
            window.active > self._goal * SETTLED or now_ms - self._cut_ms < SETTLING_MS
        ):
            return self._target(f"{seen}: the last cut is taking effect", nobody=True)
        first_active, first_share = self._cut_from
        if first_active and self._goal < FAR * first_active and share > USELESS * first_share:
            return self._target(f"{seen} with {self._goal / first_active:.0%} of the visitors: "
                                f"load is not the cause, {self._holds()}")  # fmt: skip
        wanted_ms = MEAN_WANTED * self.bounds.objective_ms
        newest = list(self._recent)[-2:]
        slow_ms = sum(one.documents.sum_ms - one.documents.total * wanted_ms for one in newest)
        excess = max(0.0, slow_ms) / (len(newest) * WINDOW_MS)
        part = CUT_GAIN * excess / max(1, window.active)
        if not first_active:
            self._cut_from = (float(window.active), share)
        before = self._shown
        self._reduce(window, min(CUT_MOST, max(CUT_LEAST, part)), now_ms)
        return self._target(f"{seen} in two windows: {self._moved(before)}")

    def _reduce(self, window: Window, part: float, now_ms: int) -> None:
        reached = min(self._goal, float(max(window.active, self.bounds.floor)))
        bound = reached >= BINDS * self._goal
        if not bound and self.stopped and not self._sudden:
            return
        self._sudden = False
        lower = max(float(self.bounds.floor), reached * (1 - part), self._goal * (1 - CUT_MOST))
        if bound or not self._peak:  # few inside are slow, such as after an outage: no knee
            # A cut below the last one: the capacity has shrunk.
            self._peak = reached if reached >= self._peak else (reached + lower) / 2
        self._goal, self._cut_ms, self._easy_s = lower, now_ms, 0.0
        self._recent.clear()

    def _too_few(self, samples: int, now_ms: int) -> CapacityTarget:
        seen = with_unit(samples, "documents")
        few = f"only {seen} in {len(self._recent) * WINDOW_MS // 1000} s"
        if self.stopped and now_ms - max(self._seen_ms, self._stopped_ms) >= PROBE_MS:
            why = f"{few}: a few visitors are admitted to see whether the origin answers"
            return self._target(why, probe=True)
        healthy = self._healthy()
        if healthy:
            self._ease = 1.0  # what it was is long ago
        if self.stopped and healthy:
            self._calm += 1
            if self._calm >= self._calm_least:
                self._stopped_ms, self._refill = 0, REFILL_AFTER_GROSS
        settling = self._cut_ms > 0 and now_ms - self._cut_ms < SETTLING_MS
        return self._target(f"{few}: {self._holds()}", only_replace=settling)

    def _healthy(self) -> bool:
        """Whether the newest window has documents, all as they should be."""
        newest = self._recent[-1]
        documents = newest.documents + newest.pending.slower_than(self.bounds.objective_ms)
        return (
            documents.total > 0
            and not newest.failed
            and documents.quantile_ms(QUANTILE) <= self.bounds.objective_ms
        )

    def _go_on(
        self, window: Window, way: float, worst: float, passed_s: float, seen: str, *, failing: bool
    ) -> CapacityTarget:
        if worst > GOOD or failing:
            self._easy_s /= 2
        else:
            self._cut_from = (0.0, 0.0)
        if failing:
            return self._target(f"{seen}: {self._holds()}")
        if self._peak and self._goal > NEAR * self._peak:
            return self._steer(window, way, worst, passed_s, seen)
        if worst > GOOD:
            return self._target(f"{seen}: {self._holds()}")
        return self._grow(window, GROWTH_A_MINUTE ** (self._ease / 60), passed_s, seen)

    def _steer(
        self, window: Window, way: float, worst: float, passed_s: float, seen: str
    ) -> CapacityTarget:
        change = max(-GAIN, GAIN * (WANTED - way))
        if change <= 0:
            before = self._shown
            self._goal = self._within(self._goal * (1 + change) ** (passed_s / 60))
            return self._target(f"{seen}: {self._moved(before)}")
        if worst > GOOD:
            return self._target(f"{seen}: {self._holds()}")
        self._easy_s = max(0.0, self._easy_s + (passed_s if way < EASY else -passed_s))
        trust = min(1.0, max(0.0, self._easy_s / TRUSTED_S - 1))
        trust *= 1 - max(0.0, way) / WANTED
        change += (GROWTH_A_MINUTE - 1 - change) * trust
        return self._grow(window, (1 + change) ** (1 / 60), passed_s, seen)

    def _grow(self, window: Window, a_second: float, passed_s: float, seen: str) -> CapacityTarget:
        """`a_second`: factor."""
        ceiling = self.bounds.total_active_users
        if window.scaling:
            return self._target(f"{seen}, but instances are changing: {self._holds()}")
        if window.active < BINDS * self._goal:
            return self._target(f"{seen}, too few inside to try more: {self._holds()}")
        self._refill = REFILL
        if self._goal >= ceiling:
            return self._target(f"{seen}: the operator's limit of {ceiling}")
        before = self._shown
        self._goal = min(float(ceiling), self._goal * a_second**passed_s)
        if self._peak:
            self._peak = max(self._peak, self._goal)
        return self._target(f"{seen}: {self._moved(before)}")

    def _moved(self, before: int) -> str:
        return f"{before} → {self._shown}" if self._shown != before else self._holds()

    def _holds(self) -> str:
        return "admissions stay stopped" if self.stopped else f"the target stays at {self._shown}"

    def _within(self, sessions: float) -> float:
        return min(float(self.bounds.total_active_users), max(float(self.bounds.floor), sessions))

    @property
    def _shown(self) -> int:
        return int(self._goal)

    def _target(
        self, reason: str, *, only_replace: bool = False, nobody: bool = False, probe: bool = False
    ) -> CapacityTarget:
        """`only_replace`: admit as many as leave; `nobody`: not even those; `probe`: a few although
        admissions are stopped.
        """
        if self.stopped:
            self._told = self._goal
        else:  # what is told falls step by step; until it is there, only those who leave are replaced
            self._told = max(self._goal, self._told * (1 - CUT_MOST))
        inside = self._active
        if probe:
            beyond = max(1.0, PROBE_SHARE * self._goal)
        elif nobody and not self.stopped:
            beyond = -max(60 * self._leaving, 60_000 / WINDOW_MS)  # at least one leaves in a window
        elif self.stopped or only_replace or self._told > self._goal:
            beyond = 0.0
        else:
            part = self._refill if self._peak else RAMP
            beyond = max(part * self._goal, RAMP_INSIDE * inside, self.bounds.floor) * self._ease
        sessions = int(self._told)
        if self.stopped and not probe:
            return CapacityTarget(
                sessions, 0, min(sessions, max(inside, self.bounds.floor)), reason
            )
        per_minute = int(60 * self._leaving + beyond)
        added = -int(-beyond * WINDOW_MS // 60_000)
        least = self.bounds.floor if nobody else 1
        return CapacityTarget(
            sessions,
            min(self.bounds.new_users_per_minute, max(1, per_minute)),
            max(least, min(int(self._goal), inside + added)),
            reason,
        )


def more_than(share: float, found: int, total: int) -> bool:
    """Whether more than this share, and not by chance."""
    expected = share * total
    return found > expected + CERTAIN * sqrt(expected * (1 - share))
