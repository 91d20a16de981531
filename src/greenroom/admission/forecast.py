"""What will come of the line: learns from reports, plays the room forward, and makes the sketch that data centers read.

Every two seconds while somebody waits without a permit:

1. how old sessions get is known from those that ended and those that have not yet (`endings`);
2. the room is played forward, five seconds at a time, for up to half an hour (`fluid`); what came true of earlier forecasts scales it
   (`track`); beyond half an hour the last pace goes on, up to a day, and further than that nothing is believed;
3. people give up, at a rate per second of waiting, and a share is never seen again after joining (`patience`);
4. so the number of people before somebody becomes a wait, in a table (`sketch`);
5. and how far waits stray from it is learnt from what came of earlier forecasts (`intervals`).

Until ten sessions have ended nothing is known of how soon units come back, so only those are given a number who are reached by units
that are free already. Everything is a function of the reports and the time: the same reports make the same forecast.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp

import msgspec

from greenroom.admission.census import AGE_CELL_MS
from greenroom.admission.endings import Endings
from greenroom.admission.fluid import STEP_S, STEPS_MAX, WINDOW_STEPS, admissions, ends_of_the_living
from greenroom.admission.intervals import Intervals
from greenroom.admission.messages import SyncUp
from greenroom.admission.patience import Patience
from greenroom.admission.sketch import UNDECIDED_S, Sketch, between
from greenroom.admission.track import AFTER_MS, Track
from greenroom.model.room import Room

THINK_MS = 2_000
PROBE_MS = 10_000
PROBED = (0.1, 0.25, 0.5, 0.75, 1.0)
"""How far down the line probes stand."""
BELIEVED_ENDS = 10
"""Fewer ended sessions say nothing about how soon units come back."""
BELIEVED_S = 86_400.0
TAIL_STEPS = 120
TAIL_GROWTH = 1.2
FINE_STEPS = 12
COARSENING = 1.06
"""Knots stand 5 s apart for a minute, and then 6 per cent: about seventy for half an hour, ninety for a day."""
CLAIM_S = 1.0
"""From the moment a permit is there to the try that takes it, on average."""
MARGIN = 1.5
"""Played forward until so many times those waiting are in: some join before the next forecast."""
AHEAD_FINER = 1.1
"""How far apart the knots of the line stand, as a factor on the people: a tenth more is a tenth more to wait."""
PATIENCE_EXPONENT = 1.0
"""Who has waited long rarely gives up, so the rate of giving up is not believed any further."""


class Facts(msgspec.Struct, frozen=True):
    """The coordinator's books at one moment, summed over all data centers."""

    sessions: int
    permits: int  # granted and not known to be used
    free: int  # units in the pool
    waiting: int  # without a permit
    ended: int  # sessions, ever
    seconds: dict[int, int]  # those waiting without a permit, by arrival second


class Forecaster:
    """All that is learnt about one room. Times are the coordinator's milliseconds."""

    def __init__(self, room: Room, now_ms: int) -> None:
        self._endings = Endings(room.session_ms, now_ms // AGE_CELL_MS)
        self._patience = Patience(now_ms)
        self._track = Track()
        self._intervals = Intervals()
        self._heard: dict[str, SyncUp] = {}
        self._ended: dict[str, dict[int, int]] = {}
        self._recent: dict[int, int] = {}  # admissions of the last minute by second
        self._admitted = 0
        self._waiting = 0
        self._knots: list[tuple[int, int]] = []  # (arrival second, how many have come by its end and wait), from the first on
        self._probe_ms = 0
        self.due_ms = now_ms
        self.sketch: Sketch | None = None
        self.configure(room)

    def configure(self, room: Room) -> None:
        """New settings; what was learnt of sessions holds unless their duration is another one."""
        self._total = room.total_active_users
        self._per_minute = room.new_users_per_minute
        self._random = room.queueing_method == "random"
        self._endings.configure(room.session_ms)

    # -- what reports say -----------------------------------------------------------------------------------------------------

    def admitted(self, ages_ms: Sequence[int], now_ms: int) -> None:
        """Admissions reported for the first time."""
        self._admitted += len(ages_ms)
        self._endings.step(now_ms // AGE_CELL_MS)
        for cell, count in Counter([(now_ms - age_ms) // AGE_CELL_MS for age_ms in ages_ms]).items():
            self._endings.begin(cell, count)
        for second, count in Counter([(now_ms - age_ms) // 1000 for age_ms in ages_ms]).items():
            self._recent[second] = self._recent.get(second, 0) + count

    def hear(self, up: SyncUp, now_ms: int) -> None:
        """The newest report of a data center."""
        before = self._heard.get(up.data_center)
        if before is None or before.epoch != up.epoch:
            self._ended[up.data_center] = {}
            joined = lost = strays = 0
        else:
            joined, lost, strays = before.joined, before.lost, before.strays
        self._endings.step(now_ms // AGE_CELL_MS)
        known = self._ended[up.data_center]
        for age, count in up.ended:
            self._endings.end(age, max(0, count - known.get(age, 0)))
            known[age] = count
        self._patience.pass_time(self._waiting, now_ms)
        self._patience.count(max(0, up.joined - joined), up.lost - lost, max(0, up.strays - strays))
        self._heard[up.data_center] = up
        if before is not None and up.front_s != before.front_s:
            self._intervals.front_at(up.front_s, now_ms)

    # -- what follows from them -----------------------------------------------------------------------------------------------

    def think(self, facts: Facts, now_ms: int) -> None:
        """Makes a new sketch, or none when nobody waits without a permit."""
        self.due_ms = now_ms + THINK_MS
        self._waiting = facts.waiting
        self._endings.step(now_ms // AGE_CELL_MS)
        self._endings.reconcile(facts.sessions)
        self._patience.pass_time(facts.waiting, now_ms)
        if not facts.waiting or self._random:
            self.sketch = None
            self._intervals.forget()
            self._track.forget()
            return
        self._track.check(now_ms, self._admitted)
        self._intervals.overdue(now_ms)
        learnt = self._endings.seen >= BELIEVED_ENDS
        self._knots = knots_of(facts.seconds)
        entered = self._play(facts, learnt, now_ms)
        people, seconds = table(entered, self._track.scale, self._patience.giving_up_per_s, learnt)
        strays_per_s = self._patience.stray_share * self._patience.joining_per_s(int(UNDECIDED_S * 1000))
        self.sketch = Sketch(
            now_ms, people, seconds, self._intervals.widths, self._random, learnt or facts.ended < BELIEVED_ENDS, strays_per_s=strays_per_s
        )
        if now_ms >= self._probe_ms:
            self._probe_ms = now_ms + PROBE_MS
            self._track.expect(now_ms, self._admitted, facts.permits + sum(entered[: AFTER_MS // 1000 // STEP_S]))
            self._place_probes(facts, now_ms)

    def sketch_for(self, mine: Mapping[int, int]) -> Sketch | None:
        """The newest sketch for a data center where these wait without a permit, by arrival second: with those before them elsewhere."""
        if self.sketch is None or self._random:
            return self.sketch
        ahead, count, own = [(second, count) for second, count in self._knots], 0, sorted(mine.items())
        index = 0
        for place, (second, everybody) in enumerate(self._knots):
            while index < len(own) and own[index][0] <= second:
                count += own[index][1]
                index += 1
            ahead[place] = (second, max(0, everybody - count))
        return msgspec.structs.replace(self.sketch, ahead=tuple(ahead))

    def _play(self, facts: Facts, learnt: bool, now_ms: int) -> list[float]:
        """Admissions in each of the next steps, before scaling."""
        second = now_ms // 1000
        recent = [0.0] * WINDOW_STEPS
        self._recent = {then: count for then, count in self._recent.items() if then > second - STEP_S * WINDOW_STEPS}
        for then, count in self._recent.items():
            recent[-1 - max(0, second - then) // STEP_S] += count
        enough = float("inf") if self._random else MARGIN * facts.waiting + 10
        if not learnt:
            return admissions([0.0] * STEPS_MAX, (1.0,) * STEPS_MAX, facts.free, facts.permits, self._per_minute, recent, enough)
        survival = self._endings.survival()
        living = self._endings.living(facts.sessions, survival)
        ends = ends_of_the_living(living, survival, now_ms % AGE_CELL_MS / AGE_CELL_MS, STEPS_MAX)
        return admissions(ends, survival, facts.free, facts.permits, self._per_minute, recent, enough)

    def _place_probes(self, facts: Facts, now_ms: int) -> None:
        sketch = self.sketch
        if sketch is None or self._random:
            return
        wanted = [max(1, int(share * facts.waiting)) for share in PROBED]
        passed, index = 0, 0
        for second in sorted(facts.seconds):
            passed += facts.seconds[second]
            while index < len(wanted) and passed >= wanted[index]:
                undecided_s = min(UNDECIDED_S, max(0.0, UNDECIDED_S - now_ms / 1000 + second))
                wait_s = between(sketch.people, sketch.seconds, max(0.0, wanted[index] - sketch.strays_per_s * undecided_s))
                if wait_s is not None:
                    self._intervals.expect(second, now_ms, wait_s)
                index += 1


def knots_of(seconds: Mapping[int, int]) -> list[tuple[int, int]]:
    """How many came by the end of a second, finer towards the front."""
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


def table(entered: Sequence[float], scale: float, giving_up_per_s: float, learnt: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """People in front who are gone by then, and when: knots, ascending in both. Beyond what was played the pace of the last goes on."""
    people, seconds = [0.0], [CLAIM_S]
    count, knot = 0.0, 0.0
    for step, now in enumerate(entered, 1):
        before = count
        count += now * scale * exp(min(PATIENCE_EXPONENT, giving_up_per_s * STEP_S * (step - 0.5)))
        if before == people[-1] < count and seconds[-1] < CLAIM_S + STEP_S * (step - 1):
            people.append(before + 1e-6)  # nobody was let in for a while: the table is flat up to here
            seconds.append(CLAIM_S + STEP_S * (step - 1))
        if count > people[-1] and (step >= knot or step == len(entered)):
            people.append(count)
            seconds.append(CLAIM_S + STEP_S * step)
            knot = max(step + 1, step * COARSENING) if step >= FINE_STEPS else step + 1
    if learnt:
        last = entered[-TAIL_STEPS:]
        pace = sum(last) / len(last) / STEP_S * scale
        while pace > 0 and seconds[-1] < BELIEVED_S:
            begun_s, ends_s = seconds[-1], seconds[-1] * TAIL_GROWTH
            people.append(people[-1] + pace * (ends_s - begun_s) * exp(min(PATIENCE_EXPONENT, giving_up_per_s * (begun_s + ends_s) / 2)))
            seconds.append(ends_s)
    return tuple(people), tuple(seconds)
