"""Forecasts the line: learns from reports, simulates the room, and makes the wait table.

Every two seconds while visitors wait without a permit: `endings` learns how long sessions last, and
`reuse` how long a unit is idle between two; `fluid` simulates up to half an hour, scaled by how
earlier forecasts came true (`track`); `patience` estimates how many give up; `wait_table` turns the
number of visitors ahead into a wait, and `intervals` gives its quantiles
(docs/explanation/wait-estimates.md).

Until ten sessions have ended, only visitors whom free units reach get a number. The same reports make
the same forecast.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log1p

import msgspec

from greenroom.admission.forecast.endings import Endings
from greenroom.admission.forecast.fluid import (
    STEP_S,
    STEPS_MAX,
    WINDOW_STEPS,
    admissions,
    ends_of_the_living,
)
from greenroom.admission.forecast.intervals import Intervals
from greenroom.admission.forecast.lottery import OLDEST_MS as DRIFT_OLDEST_MS
from greenroom.admission.forecast.lottery import LotteryForecast, drift_of_draws, drifted, hazards
from greenroom.admission.forecast.newcomers import FULL_S, RATE_S, with_newcomers
from greenroom.admission.forecast.patience import UNSEEN_S, Patience
from greenroom.admission.forecast.reuse import Reuse
from greenroom.admission.forecast.track import AFTER_MS, Track
from greenroom.admission.forecast.track import AFTER_MS as DRIFT_AFTER_MS
from greenroom.admission.messages.line_counts import AGE_CELL_MS
from greenroom.admission.messages.sync import SyncUp
from greenroom.admission.messages.wait_table import (
    BELIEVED_S,
    TAIL_GROWTH,
    UNDECIDED_S,
    WaitTable,
    between,
    next_knot,
)
from greenroom.admission.pacing import LEAST_PER_S, PACE_FACTOR, SAVED_US
from greenroom.model.room import Room

THINK_MS = 2_000
BLIND_MS = 10_000
"""After a longer pause it is unknown when earlier forecasts came true."""
PROBE_MS = 10_000
PROBED = (0.1, 0.25, 0.5, 0.75, 1.0)
BELIEVED_ENDS = 10
LATELY_MS, WHOLE_MS = 60_000, 600_000
TAIL_STEPS = 120
MARGIN = 1.5
"""The simulation admits this times those waiting: some join before the next forecast."""
NEWEST_S = FULL_S + RATE_S
AHEAD_FINER = 1.1
"""Knots are a tenth apart, as a tenth more people wait a tenth longer."""
SAVED_S = SAVED_US / 1_000_000
LEASED_S = 60.0
"""A bound on what reports claim."""
PATIENT_S = 900.0
CALLED_S = 2.0


class ForecastInput(msgspec.Struct, frozen=True):
    sessions: Mapping[str, int]  # in each reachable data center
    permits: int  # granted and not known to be used
    free: int  # units in the pool
    waiting: int  # without a permit; random: everybody
    ended: int  # sessions, ever
    seconds: Mapping[int, int]  # `waiting` by arrival second
    # in each data center all who wait, with a permit or without, by arrival second
    in_line: tuple[Mapping[int, int], ...] = ()
    # (in how many seconds, units) of silent data centers
    returning: tuple[tuple[float, int], ...] = ()
    report_age_ms: int = 0  # mean age of what is known of those who wait

    def standing(self, second: int) -> int:
        return (
            sum([counts.get(second, 0) for counts in self.in_line])
            if self.in_line
            else self.seconds.get(second, 0)
        )


class Forecaster:
    def __init__(self, room: Room, now_ms: int) -> None:
        self._endings = Endings(room.session_ms, now_ms // AGE_CELL_MS)
        self._patience = Patience(now_ms)
        self._track = Track()
        self._reuse = Reuse()
        self._intervals = Intervals()
        self._draws = LotteryForecast()
        self._contacts: frozenset[str] = frozenset()
        self._change = ""
        self._heard: dict[str, SyncUp] = {}
        self._ended: dict[str, dict[int, int]] = {}
        self._recent: dict[int, int] = {}  # admissions of the last minute by second
        self._admitted = self._judged_admitted = 0
        self._random = False
        # arrivals of the last seconds who wait without a permit, and with or without one
        self._newest: dict[int, int] = {}
        self._coming: dict[int, int] = {}
        # (arrival second, waiters who came by its end), from the first on
        self._knots: list[tuple[int, int]] = []
        self._probe_ms = 0
        self._thought_ms = now_ms
        self.due_ms = now_ms
        self.wait_table: WaitTable | None = None
        self.configure(room)

    def configure(self, room: Room) -> None:
        """Keeps observations of sessions unless the duration changes."""
        self._total = room.total_active_users
        self._per_minute = room.new_users_per_minute
        self._paced_per_s = (
            max(LEAST_PER_S, PACE_FACTOR * self._per_minute / 60)
            if room.pace_admissions
            else float("inf")
        )
        random = room.queueing_method == "random"
        if random != self._random:
            self._random = random
            self._forget()
        self._endings.configure(room.session_ms)
        self._longest_s = float(room.check_in_max_s)

    # -- what reports say --------------------------------------------------------------------------

    def admitted(self, data_center: str, ages_ms: Sequence[int], now_ms: int) -> None:
        self._admitted += len(ages_ms)
        self._endings.step(now_ms // AGE_CELL_MS)
        for cell, count in Counter(
            [(now_ms - age_ms) // AGE_CELL_MS for age_ms in ages_ms]
        ).items():
            self._endings.begin(data_center, cell, count)
        for second, count in Counter([(now_ms - age_ms) // 1000 for age_ms in ages_ms]).items():
            self._recent[second] = self._recent.get(second, 0) + count

    def meet(self, data_center: str, now_ms: int) -> bool:
        """False: the first report after a silence, so when sessions ended meanwhile is unknown."""
        self._endings.step(now_ms // AGE_CELL_MS)
        return self._endings.hear(data_center, now_ms // AGE_CELL_MS)

    def hear(self, up: SyncUp, now_ms: int) -> None:
        before = self._heard.get(up.data_center)
        unbroken = self.meet(up.data_center, now_ms)
        if before is None or before.epoch != up.epoch:
            self._ended[up.data_center] = {}
            joined = lost = strays = 0
            if before is not None:
                self._endings.forget(up.data_center)
        else:
            joined, lost, strays = before.joined, before.lost, before.strays
        known = self._ended[up.data_center]
        for age, count in up.ended:
            if unbroken:
                self._endings.end(up.data_center, age, max(0, count - known.get(age, 0)))
            known[age] = count
        self._patience.pass_time(now_ms)
        self._patience.count(max(0, up.joined - joined), up.lost - lost, max(0, up.strays - strays))
        self._heard[up.data_center] = up
        if before is not None and up.front_s != before.front_s:
            self._intervals.front_at(up.front_s)

    # -- what follows from them --------------------------------------------------------------------

    def think(self, facts: ForecastInput, now_ms: int) -> None:
        self.due_ms = now_ms + THINK_MS
        self._endings.step(now_ms // AGE_CELL_MS)
        self._endings.reconcile(facts.sessions)
        self._patience.pass_time(now_ms)
        ahead = 0 if self._random else self._admitted - self._judged_admitted
        self._patience.judge(self._tries(facts.seconds), ahead, now_ms)
        self._judged_admitted = self._admitted
        blind, self._thought_ms = now_ms - self._thought_ms > BLIND_MS, now_ms
        if not facts.waiting or blind:
            self._forget()
        if not facts.waiting:
            return
        self._compare(facts, now_ms)
        learnt = self._endings.seen >= BELIEVED_ENDS
        if learnt:
            self._reuse.see(facts.permits, self._admitted, now_ms, BLIND_MS, facts.report_age_ms)
        entered = self._play(facts, learnt, now_ms)
        probing = now_ms >= self._probe_ms
        if probing:
            self._probe_ms = now_ms + PROBE_MS
            if learnt and not any(after_s * 1000 < AFTER_MS for after_s, _ in facts.returning):
                self._track.expect(
                    now_ms,
                    self._admitted,
                    facts.permits + sum(entered[: AFTER_MS // 1000 // STEP_S]),
                )
        make = self._draw if self._random else self._line_up
        self.wait_table = make(facts, entered, learnt, probing, now_ms)

    def _tries(self, seconds: Mapping[int, int]) -> Iterator[tuple[int, int, float]]:
        """How often waiters try, by `ledger.refresh` and the newest wait table."""
        longest_s, before = self._longest_s, 0
        table = None if self._random else self.wait_table
        for second, count in sorted(seconds.items()):
            every_s = longest_s
            if table is not None:
                wait_s = between(table.people, table.seconds, before + count / 2)
                if wait_s is None or wait_s >= 3 * longest_s:
                    table = None  # as for all who came later
                else:
                    every_s = max(CALLED_S, wait_s / 3)
            yield second, count, every_s
            before += count

    def _compare(self, facts: ForecastInput, now_ms: int) -> None:
        """Forgets open forecasts when a data center fell silent or came back: its admissions then
        come in one report, or in none.
        """
        contacts = frozenset(facts.sessions)
        if contacts != self._contacts:
            self._contacts = contacts
            self._track.forget()
        self._track.check(now_ms, self._admitted)

    def _line_up(
        self, facts: ForecastInput, entered: list[float], learnt: bool, probing: bool, now_ms: int
    ) -> WaitTable:
        intervals, patience = self._intervals, self._patience
        intervals.judge(facts.standing, patience.giving_up_per_s, now_ms - facts.report_age_ms)
        self._knots = knots_of(facts.seconds)
        second = now_ms // 1000
        self._newest = {
            then: facts.seconds[then]
            for then in range(second - NEWEST_S, second + 1)
            if then in facts.seconds
        }
        self._coming = {
            then: count
            for then in range(second - NEWEST_S, second + 1)
            if (count := facts.standing(then))
        }
        people, seconds = table(
            entered,
            self._track.scale,
            patience.giving_up_per_s,
            learnt,
            facts.permits,
            self._paced_per_s,
            self._reuse.idle_s,
        )
        strays_per_s = patience.stray_share * patience.joining_per_s(int(UNDECIDED_S * 1000))

        def wait_s(second: int, before: float) -> float | None:
            undecided_s = min(UNDECIDED_S, max(0.0, UNDECIDED_S - now_ms / 1000 + second))
            return between(people, seconds, max(0.0, before - strays_per_s * undecided_s))

        if probing:
            self._change = self._drift_of_the_line(wait_s, now_ms)
            ahead, reported = 0, [knot for knot in self._knots if knot[0] <= second - FULL_S]
            for share in PROBED if reported else ():
                second, before = next(
                    knot for knot in reported if knot[1] >= share * reported[-1][1]
                )
                expected_s = wait_s(second, before - facts.seconds.get(second, 0) / 2)
                if expected_s is not None and before > ahead:
                    strays = (
                        patience.stray_share if now_ms - second * 1000 < UNDECIDED_S * 1000 else 0.0
                    )
                    intervals.expect(
                        second,
                        now_ms,
                        expected_s,
                        facts.standing(second) * (1 - strays),
                    )
                ahead = before
        known = learnt or facts.ended < BELIEVED_ENDS
        return WaitTable(
            now_ms,
            people,
            seconds,
            intervals.widths,
            False,
            known,
            strays_per_s,
            self._change,
            now_ms - DRIFT_AFTER_MS,
            permit_s=self._reuse.permit_s,
        )

    def _drift_of_the_line(self, wait_s: Callable[[int, float], float | None], now_ms: int) -> str:
        old = [
            probe
            for probe in self._intervals.open()
            if DRIFT_AFTER_MS <= now_ms - probe.made_ms <= DRIFT_OLDEST_MS
        ]
        if not old:
            return ""
        old.sort(key=lambda probe: probe.second)
        probe = old[len(old) // 2]
        before = between(
            [second for second, _ in self._knots], [count for _, count in self._knots], probe.second
        )
        now_s = None if before is None else wait_s(probe.second, before)
        return (
            "" if now_s is None else drifted(probe.wait_s - (now_ms - probe.made_ms) / 1000, now_s)
        )

    def _draw(
        self, facts: ForecastInput, entered: list[float], learnt: bool, probing: bool, now_ms: int
    ) -> WaitTable:
        draws, patience, scale = self._draws, self._patience, self._track.scale
        drawn = [facts.permits + entered[0] * scale, *[count * scale for count in entered[1:]]]
        joining_per_s = (patience.joining_per_s(LATELY_MS), patience.joining_per_s(WHOLE_MS))
        found = hazards(drawn, facts.waiting, joining_per_s, patience.giving_up_per_s, learnt)
        draws.judge(facts.seconds, patience.giving_up_per_s, now_ms)
        if probing:
            then = draws.before(now_ms - DRIFT_AFTER_MS)
            self._change = drift_of_draws(then, found, now_ms) if then else ""
            draws.expect(now_ms, facts.waiting, found)
        known = learnt or facts.ended < BELIEVED_ENDS
        return WaitTable(
            now_ms, *found, draws.widths, True, known, 0.0, self._change, now_ms - DRIFT_AFTER_MS
        )

    def _forget(self) -> None:
        self.wait_table = None
        self._change = ""
        self._intervals.forget()
        self._draws.forget()
        self._track.forget()

    def wait_table_for(
        self, mine: Mapping[int, int], everybody_here: Mapping[int, int]
    ) -> WaitTable | None:
        """Adds who is ahead of a data center's visitors elsewhere. `mine`: its waiters without a
        permit by arrival second; `everybody_here`: with or without one.
        """
        if self.wait_table is None or self._random:
            return self.wait_table
        ahead, own = list(self._knots), sorted(mine.items())
        count = index = 0
        for place, (second, everybody) in enumerate(self._knots):
            while index < len(own) and own[index][0] <= second:
                count += own[index][1]
                index += 1
            ahead[place] = (second, max(0, everybody - count))
        newest = {
            second: max(0, everybody - mine.get(second, 0))
            for second, everybody in self._newest.items()
        }
        coming = {
            second: left
            for second, count in self._coming.items()
            if (left := count - everybody_here.get(second, 0)) > 0
        }
        return msgspec.structs.replace(
            self.wait_table,
            ahead=with_newcomers(ahead, newest, self.wait_table.made_ms // 1000, coming),
        )

    def _play(self, facts: ForecastInput, learnt: bool, now_ms: int) -> list[float]:
        second = now_ms // 1000
        recent = [0.0] * WINDOW_STEPS
        self._recent = {
            then: count
            for then, count in self._recent.items()
            if then > second - STEP_S * WINDOW_STEPS
        }
        for then, count in self._recent.items():
            recent[-1 - max(0, second - then) // STEP_S] += count
        enough = float("inf") if self._random else MARGIN * facts.waiting + 10
        survival: Sequence[float] = (1.0,) * STEPS_MAX
        ends = [0.0] * STEPS_MAX
        if learnt:
            passed = now_ms % AGE_CELL_MS / AGE_CELL_MS
            survival = self._endings.survival(passed)
            living = self._endings.living(facts.sessions, survival)
            ends = ends_of_the_living(living, survival, passed, STEPS_MAX)
            for after_s, units in facts.returning:
                if (step := max(0, int(after_s)) // STEP_S) < STEPS_MAX:
                    ends[step] += units
        return admissions(
            ends,
            survival,
            facts.free,
            facts.permits,
            self._per_minute,
            recent,
            enough,
            self._reuse.idle_s,
        )


def knots_of(seconds: Mapping[int, int]) -> list[tuple[int, int]]:
    knots: list[tuple[int, int]] = []
    passed, next_at = 0, 0.0
    ordered = sorted(seconds)
    for second in ordered:
        if not knots:
            knots.append((second - 1, 0))
        passed += seconds[second]
        if passed >= next_at or second == ordered[-1]:
            knots.append((second, passed))
            next_at = passed * AHEAD_FINER + 1
    return knots


def table(
    entered: Sequence[float],
    scale: float,
    giving_up_per_s: float,
    learnt: bool,
    permits: int = 0,
    paced_per_s: float = float("inf"),
    idle_s: float = 0.0,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Ascending knots; beyond the simulation its last pace continues. Holders of `permits` leased
    ahead of a crowd come first, at `paced_per_s`; nobody enters before `idle_s`.
    """
    before_s = min(permits / paced_per_s, LEASED_S) - SAVED_S
    people, seconds = [0.0], [max(idle_s, before_s)]
    count, knot = 0.0, 0.0
    for step, now in enumerate(entered, 1):
        before = count
        before_s += now * scale / paced_per_s
        count += now * scale * exp(giving_up_per_s * FOR_S[step])
        if before == people[-1] < count and seconds[-1] < STEP_S * (step - 1):
            people.append(before + 1e-6)  # no admissions for a while: the table is flat up to here
            seconds.append(STEP_S * (step - 1.0))
        at_s = STEP_S * float(step)
        if at_s < before_s:
            at_s = before_s
        if count > people[-1] and at_s > seconds[-1] and (step >= knot or step == len(entered)):
            people.append(count)
            seconds.append(at_s)
            knot = next_knot(step)
    if learnt:
        last = entered[-TAIL_STEPS:]
        pace = sum(last) / len(last) / STEP_S * scale
        while pace > 0 and seconds[-1] < BELIEVED_S:
            begun_s, ends_s = seconds[-1], min(BELIEVED_S, max(seconds[-1], STEP_S) * TAIL_GROWTH)
            people.append(
                people[-1]
                + pace * (ends_s - begun_s) * gone_by((begun_s + ends_s) / 2, giving_up_per_s)
            )
            seconds.append(ends_s)
    return tuple(people), tuple(seconds)


def gone_by(seconds: float, giving_up_per_s: float) -> float:
    """Places freed per admitted visitor: some of those ahead give up, or have given up unseen."""
    return exp(giving_up_per_s * giving_up_for_s(seconds))


def giving_up_for_s(seconds: float) -> float:
    return UNSEEN_S + PATIENT_S * log1p(seconds / PATIENT_S)


FOR_S = [giving_up_for_s(STEP_S * (step - 0.5)) for step in range(STEPS_MAX + 1)]
"""In the middle of each step."""
