"""What the forecast learns from a room: how long sessions last, how wrong it was, who gives up, and
how many are still to come.
"""

from collections import Counter
from itertools import pairwise
from math import exp, log
from random import Random
from statistics import fmean

import pytest
from admission_world import START_MS, small_room
from examples import examples
from forecast_rooms import report
from hypothesis import example, given, settings
from hypothesis import strategies as st

from greenroom.admission.forecast import patience as patience_of
from greenroom.admission.forecast.endings import Endings
from greenroom.admission.forecast.fluid import (
    STEP_S,
    STEPS_MAX,
    WINDOW_STEPS,
    admissions,
    ends_of_the_living,
)
from greenroom.admission.forecast.forecast import (
    BELIEVED_ENDS,
    THINK_MS,
    Forecaster,
    ForecastInput,
)
from greenroom.admission.forecast.intervals import LEAST, STEP, Intervals
from greenroom.admission.forecast.newcomers import with_newcomers
from greenroom.admission.forecast.patience import Patience
from greenroom.admission.forecast.reuse import GRANTED_S, LONGEST_S, PERMIT_S, WEIGHT, Reuse
from greenroom.admission.forecast.track import Track
from greenroom.admission.messages.wait_table import (
    OFFSET_S,
    SHARES,
    WIDEST,
    width_at,
)


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(8, 60), st.integers(1, 400))
def test_the_age_at_which_sessions_end_is_learnt(steps: int, each: int) -> None:
    endings = Endings(60_000, 0)
    for cell in range(400):
        endings.step(cell)
        endings.begin("here", cell, each)
        if cell >= steps:
            endings.end("here", steps, each)
    shares = endings.survival()
    assert sum(shares) - 1 == pytest.approx(steps, rel=0.02 + 3 / each)
    assert len(endings.living({"here": 100}, shares)) == len(shares) - 1
    assert sum(endings.living({"here": 100}, shares)) == pytest.approx(100)


def test_a_room_that_has_just_filled_is_not_taken_for_one_that_no_one_stays_in() -> None:
    """Of 1,000 sessions that began at once ten ended within half a minute. Without those still
    there, all would have.
    """
    endings = Endings(60_000, 0)
    endings.begin("here", 0, 1_000)
    for cell in range(1, 7):
        endings.step(cell)
        endings.end("here", cell, 2)
    assert endings.survival()[6] == pytest.approx(0.99, abs=0.005)


@pytest.mark.parametrize("came_s", [5, 20, 60])
def test_how_long_sessions_last_is_right_while_the_first_of_a_crowd_leave(came_s: int) -> None:
    """They last as is assumed before any has ended. Of the step that goes on now only a part is
    over for those who are in it.
    """
    draw, endings = Random(1), Endings(60_000, 0)
    expected = 1 + (60 + 60) / 5
    ends: dict[int, list[int]] = {}
    for second in range(200):
        endings.step(second // 5)
        for begun in ends.pop(second, []):
            endings.end("here", second // 5 - begun // 5, 1)
        if second < came_s:
            endings.begin("here", second // 5, 6_000 // came_s)
            for _ in range(6_000 // came_s):
                ends.setdefault(second + 60 + int(draw.expovariate(1 / 60)), []).append(second)
        assert sum(endings.survival((second % 5 + 1) / 5)) == pytest.approx(expected, rel=0.035)


def test_that_many_leave_after_one_page_is_known_within_the_first_step_in_which_they_do() -> None:
    """A sixth of a crowd that came within a minute. Two seconds of it are enough."""
    endings = Endings(60_000, 0)
    for tenth in range(640):
        endings.step(tenth // 50)
        if tenth < 600:
            endings.begin("here", tenth // 50, 6)
        if tenth >= 600:
            endings.end("here", 12, 1)
        if tenth >= 620:
            assert endings.survival((tenth % 50 + 1) / 50)[13] == pytest.approx(5 / 6, abs=0.02)
            assert (
                endings.survival()[13] > 0.9
            )  # as is assumed, if nothing counts of a step that goes on


def test_sessions_that_no_one_knew_of_teach_nothing_when_they_end() -> None:
    """They began while the coordinator was away: how many began with them and live on is not known."""
    endings = Endings(60_000, 0)
    for cell in range(100):
        endings.step(cell)
        endings.begin("here", cell, 10)
        if cell >= 20:
            endings.end("here", 20, 10)
    before = endings.survival()
    endings.end("here", 30, 500)
    endings.end("there", 10, 500)
    endings.step(101)
    assert sum(endings.survival()) == pytest.approx(sum(before), rel=0.02)


def test_a_data_center_that_is_not_heard_teaches_nothing() -> None:
    """Its 200 sessions end unseen for three minutes, and all of them are said to have ended when it
    is heard again: after that long.
    """
    endings = Endings(60_000, 0)

    def pass_time(cells: range, *heard: str) -> None:
        for cell in cells:
            endings.step(cell)
            for where in heard:
                endings.hear(where, cell)
                endings.begin(where, cell, 10)
                if cell >= 20:
                    endings.end(where, 20, 10)

    pass_time(range(100), "here", "there")
    before = endings.survival()
    pass_time(range(100, 136), "here")
    assert not endings.hear("there", 136)
    pass_time(range(136, 156), "here")
    assert sum(endings.survival()) == pytest.approx(sum(before), rel=0.02)
    assert sum(endings.living({"here": 200}, before)) == pytest.approx(200)


@pytest.mark.parametrize("mean_s", [300, 1_200])
def test_the_rate_of_giving_up_is_right_while_the_line_still_grows(mean_s: int) -> None:
    """Ten a second come. A place is lost 14 seconds after its visitor; one who goes in the first 20
    seconds is a stray.
    """
    room = small_room(total_active_users=1_000, new_users_per_minute=60)
    forecaster = Forecaster(room, START_MS)
    second = START_MS // 1000
    line: list[int] = []
    for now in range(second, second + 300):
        line.append(now)
        seen = {came: round(10.0 * exp(-max(0, now - came - 14) / mean_s)) for came in line}
        lost = sum(10.0 * (1 - exp(-max(0, now - came - 14) / mean_s)) for came in line)
        strays = sum(10.0 * (1 - exp(-min(20, max(0, now - came - 14)) / mean_s)) for came in line)
        said = report(now - second + 1, joined=10 * len(line), lost=int(lost), strays=int(strays))
        forecaster.hear(said, now * 1000)
        forecaster.think(ForecastInput({}, 0, 0, sum(seen.values()), 0, seen), now * 1000)
    assert forecaster._patience.giving_up_per_s == pytest.approx(1 / mean_s, rel=0.1)


def test_another_session_duration_is_learnt_again() -> None:
    endings = Endings(60_000, 0)
    for cell in range(100):
        endings.step(cell)
        endings.begin("here", cell, 10)
        if cell >= 4:
            endings.end("here", 4, 10)
    assert endings.seen > BELIEVED_ENDS
    endings.configure(60_000)
    assert endings.seen > BELIEVED_ENDS
    endings.configure(300_000)
    assert endings.seen == 0
    assert endings.survival()[59] == 1


@settings(max_examples=examples(10), deadline=None)
@given(st.floats(0.05, 0.6), st.floats(-0.2, 0.2), st.integers(0, 99))
@example(sigma=0.0546875, bias=0.015625, seed=0)
def test_intervals_become_as_wide_as_the_errors_are(sigma: float, bias: float, seed: int) -> None:
    draw, intervals = Random(seed), Intervals()
    inside, trials = [0] * len(SHARES), 2_000
    wait_s = 100.0
    for number in range(trials):
        now_ms = START_MS + number * 1_000_000
        took_s = (wait_s + OFFSET_S) * exp(draw.gauss(bias, sigma)) - OFFSET_S
        for which, width in enumerate(width_at(intervals.widths, wait_s)):
            inside[which] += log((took_s + OFFSET_S) / (wait_s + OFFSET_S)) <= width
        intervals.expect(number, now_ms, wait_s, 1)
        for share_ms in range(0, 400_000, 2_000):
            intervals.judge(
                lambda _, in_ms=took_s * 1_000, at_ms=share_ms: int(at_ms < in_ms),
                0.0,
                now_ms + share_ms,
            )
    for which, share in enumerate(SHARES):
        bounded = (
            which == 1 or abs(bias) > sigma / 2
        )  # the median is not moved, and a quartile never crosses it
        assert bounded or inside[which] / trials == pytest.approx(share, abs=0.06)


judgements = st.lists(
    st.tuples(
        st.floats(0, 10**6), st.floats(0, 10**9), st.integers(-(10**9), 10**9), st.floats(-1, 1)
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=examples(50), deadline=None)
@given(judgements)
def test_no_evidence_makes_quantiles_cross_or_moves_them_far_at_once(
    told: list[tuple[float, float, int, float]],
) -> None:
    """Also where reports say that more are in line than came, or fewer than none."""
    intervals, now_ms = Intervals(), START_MS
    for number, (wait_s, standing, left, giving_up_per_s) in enumerate(told):
        before = intervals.widths
        intervals.forget()
        intervals.expect(number, now_ms, wait_s, standing)
        now_ms += int(4_000 * (wait_s + OFFSET_S))  # all four quantiles have come
        intervals.judge(lambda _, left=left: max(0, left), max(0.0, giving_up_per_s), now_ms)
        for was, (low, middle, high, top) in zip(before[:2], intervals.widths[:2], strict=True):
            assert -WIDEST <= low < middle == 0 < high < top <= WIDEST
            assert abs(log(low / was[0])) <= STEP
            assert abs(log(high / was[2])) <= STEP


@pytest.mark.parametrize(("seed", "report_age_ms"), [(1, 300), (2, 500), (3, 700)])
def test_a_wait_is_told_what_waits_of_its_length_have_taught(seed: int, report_age_ms: int) -> None:
    """Errors of a second and a half for every wait: what is between two of LEADS_S is learnt where
    it is read, from reports of some age.
    """
    draw, intervals, inside, trials = Random(seed), Intervals(), [0, 0], 3_000
    for number in range(trials):
        now_ms, wait_s = START_MS + number * 1_000_000, draw.uniform(25, 110)
        took_s = wait_s + draw.gauss(0, 2.2)
        low, _, high, _ = width_at(intervals.widths, wait_s)
        for which, width in enumerate((low, high)):
            inside[which] += took_s <= (wait_s + OFFSET_S) * exp(width) - OFFSET_S
        intervals.expect(number, now_ms, wait_s, 1)
        for at_ms in range(0, 400_000, THINK_MS):
            intervals.judge(
                lambda _, in_ms=took_s * 1_000, seen_ms=at_ms - report_age_ms: int(seen_ms < in_ms),
                0.0,
                now_ms + at_ms - report_age_ms,
            )
    assert inside[0] / trials == pytest.approx(0.25, abs=0.07)
    assert inside[1] / trials == pytest.approx(0.75, abs=0.07)


def test_a_line_that_stops_widens_its_intervals_before_anyone_got_in() -> None:
    intervals = Intervals()
    for number in range(20):
        intervals.expect(number, START_MS, 120, 5)
    untaught, before = intervals.widths[:2]
    intervals.judge(lambda _: 5, 0.0, START_MS + 100_000)
    assert intervals.widths[1] == before
    intervals.judge(lambda _: 5, 0.0, START_MS + 240_000)
    assert intervals.widths[1][2] > before[2] + 0.1
    assert intervals.widths[0] == untaught
    for shorter, further in pairwise(
        intervals.widths[1:]
    ):  # nothing was learnt of longer waits yet
        assert further[2] == pytest.approx(max(LEAST, shorter[2] / 2))
        assert further[3] == shorter[3]


@settings(max_examples=examples(30), deadline=None)
@given(
    st.integers(0, 400),
    st.floats(5, 100),
    st.floats(0.1, 2.5),
    st.integers(0, 1_500),
    st.integers(0, 2**32),
)
def test_permits_that_are_out_say_how_long_units_lie_idle(
    seed: int, per_s: float, used_after_s: float, report_age_ms: int, first: int
) -> None:
    """Each permit is used after a time of its own, and reported later; what is learnt is the mean
    of the first.
    """
    draw, reuse = Random(seed), Reuse()
    admitted, granted_ms, out = first, 0.0, list[float]()
    for passed_ms in range(0, 240_000, 2_000):
        while granted_ms <= passed_ms:
            out.append(granted_ms + 2_000 * used_after_s * draw.random())
            granted_ms += draw.expovariate(per_s / 1_000)
        left = [used_ms for used_ms in out if used_ms + report_age_ms > passed_ms]
        admitted += len(out) - len(left)
        out = left
        reuse.see(len(out), admitted, START_MS + passed_ms, 10_000, report_age_ms)
    seen = 45 / log(2) * per_s  # so many admissions count
    mean_s = (used_after_s * seen + PERMIT_S * WEIGHT) / (seen + WEIGHT)
    assert reuse.idle_s - GRANTED_S == pytest.approx(mean_s, rel=0.25, abs=0.1)


def test_a_silence_says_nothing_of_idle_units_and_permits_that_no_one_uses_little() -> None:
    reuse = Reuse()
    before = reuse.idle_s
    reuse.see(500, 1_000, START_MS, 10_000, 0)
    reuse.see(500, 1_000, START_MS + 60_000, 10_000, 0)
    assert reuse.idle_s == before
    for second in range(62, 600, 2):
        reuse.see(500, 1_000, START_MS + second * 1_000, 10_000, 0)
    assert reuse.idle_s == GRANTED_S + LONGEST_S


@pytest.mark.parametrize("idle_s", [0.5, 1.5, 2.5])
def test_units_are_used_again_after_they_were_idle(idle_s: float) -> None:
    """In a full room as many get in as Little's law says: the units by the time of a session and of
    the pause behind it.
    """
    survival = [1.0] * 12 + [0.9**step for step in range(200)]
    mean_s = STEP_S * (sum(survival) - 1)
    ends = ends_of_the_living(
        [2_000 * reached / sum(survival[:-1]) for reached in survival[:-1]],
        survival,
        0.0,
        STEPS_MAX,
    )
    entered = admissions(ends, survival, 0, 0, 100_000, [0.0] * WINDOW_STEPS, float("inf"), idle_s)
    assert sum(entered[-60:]) / 60 / STEP_S == pytest.approx(2_000 / (mean_s + idle_s), rel=0.002)


def test_one_minute_says_at_most_half_more_or_half() -> None:
    """A surge meets permits that were leased ahead of it: ten times what was forecast for one
    minute is no new pace.
    """
    track = Track()
    for minute, came in enumerate((100, 100, 1_000)):
        track.expect(START_MS + minute * 60_000, minute * 100, 100.0)
        track.check(START_MS + (minute + 1) * 60_000, minute * 100 + came)
    assert 1 < track.scale < 1.1


def test_what_leaves_the_minute_is_let_in_again_with_the_next_sync() -> None:
    """Three tenths of a step later; and permits that are not used yet count with the admissions
    just now.
    """
    recent = [20.0, 10.0, *[0.0] * (WINDOW_STEPS - 3), 210.0]
    entered = admissions([0.0] * STEPS_MAX, (1.0,) * STEPS_MAX, 1_000, 60, 300, recent, 0, 1.5)
    assert entered[:4] == pytest.approx([14, 6 + 7, 3, 0])


def test_what_was_forecast_before_any_session_had_ended_is_not_compared() -> None:
    """Nothing was known of how soon units come back, so that more came says nothing of the pace."""
    forecaster, second = (
        Forecaster(small_room(total_active_users=200, new_users_per_minute=300), START_MS),
        START_MS // 1000,
    )
    for passed in range(0, 130, 2):
        now_ms = START_MS + passed * 1_000
        forecaster.admitted("here", [0] * 10, now_ms)
        forecaster.think(ForecastInput({"here": 150}, 0, 50, 500, 0, {second - 1: 500}), now_ms)
    assert forecaster._track.scale == 1


def test_strays_and_those_who_give_up_are_not_taken_for_let_in() -> None:
    intervals = Intervals()
    intervals.expect(1, START_MS, 60, 8.0)  # ten came, two of them are never seen again
    before = intervals.widths[1]
    intervals.judge(lambda _: 8, 0.0, START_MS + 60_000)
    low, *_ = intervals.widths[1]
    assert low > before[0]  # no one was in by the 25th percentile: it moves towards the median
    intervals.expect(2, START_MS, 60, 8.0)
    intervals.judge(lambda _: 6, -log(6 / 8) / 60, START_MS + 60_000)
    assert intervals.widths[1][0] > low


def test_newcomers_who_are_not_in_the_reports_yet_are_counted_before_who_comes_now() -> None:
    """Ten a second come elsewhere: of the last four seconds only a part is known, and more will
    come until the next table.
    """
    newest = dict.fromkeys(range(90, 97), 10) | {97: 4, 98: 1}
    ahead = [(89, 500), (95, 560), (98, 575)]
    found = dict(with_newcomers(ahead, newest, 100, newest))
    assert found[96] == 570
    assert [found[second] for second in (97, 98, 99, 100)] == [580, 590, 600, 610]
    assert found[110] == 710
    assert list(found) == sorted(found)


def test_in_the_first_seconds_of_a_crowd_those_with_a_permit_say_how_many_come_next() -> None:
    """Of the 80 who came elsewhere by second 96 all but five have a permit, and none of those who
    come next.
    """
    coming = dict.fromkeys(range(93, 97), 20) | {97: 7, 98: 1}
    found = dict(with_newcomers([(95, 0), (96, 5), (98, 13)], {96: 5, 97: 7, 98: 1}, 100, coming))
    assert [found[second] for second in (96, 97, 98, 99, 100)] == [5, 25, 45, 65, 85]


def test_a_crowd_that_has_just_begun_to_come_is_expected_to_go_on() -> None:
    """Of the first second many were let in, and of the last ones few are in the reports; the
    fullest two had 3,000.
    """
    coming = {94: 500, 95: 1_000, 96: 1_400, 97: 1_600, 98: 600}
    found = dict(
        with_newcomers(
            [(95, 0), (96, 200), (98, 2_400)], {96: 200, 97: 1_600, 98: 600}, 100, coming
        )
    )
    assert found[100] == pytest.approx(200 + 4 * 1_500, rel=0.05)
    steady = with_newcomers(
        [(95, 0), (96, 20), (98, 40)],
        {96: 20, 97: 15, 98: 5},
        100,
        {91: 24, 92: 16, 93: 25, 94: 15, 95: 20, 96: 20},
    )
    assert dict(steady)[100] == 20 + 4 * 20


def test_a_line_that_no_one_joins_any_more_gets_no_newcomers() -> None:
    assert dict(with_newcomers([(10, 0), (20, 80)], {}, 100, {}))[110] == 80


@given(st.dictionaries(st.integers(1, 12), st.integers(0, 50), max_size=12), st.integers(0, 30))
def test_newcomers_never_make_the_line_shorter(counts: dict[int, int], older: int) -> None:
    ahead, total = [(-1, 0), (0, older)], older
    for second in sorted(counts):
        total += counts[second]
        ahead.append((second, total))
    found = with_newcomers(ahead, counts, 12, counts)
    assert all(after[0] > before[0] and after[1] >= before[1] for before, after in pairwise(found))
    assert found[-1][1] >= total


def rates_in_a_crowd(mean_s: float) -> list[float]:
    """Of giving up, every two seconds from half a minute on, as learnt from 6,000 who came at once
    and try about every 20 seconds.
    """
    draw, patience = Random(1), Patience(0)
    lost_s, strays_s = [], []
    for _ in range(6_000):
        due_s, leaves_s, tries = 2.0, draw.expovariate(1 / mean_s), 0
        while due_s < leaves_s:
            due_s += draw.uniform(18, 22)
            tries += 1
        (strays_s if tries < 2 else lost_s).append(due_s + 4)
    found = []
    for second in range(2, 120, 2):
        strays = sum(second - 2 <= at_s < second for at_s in strays_s)
        lost = sum(second - 2 <= at_s < second for at_s in lost_s)
        patience.pass_time(second * 1000)
        patience.count(6_000 if second == 4 else 0, lost + strays, strays)
        waiting = 6_000 - sum(at_s < second for at_s in (*lost_s, *strays_s))
        patience.judge([(0, waiting, 20.0)], 0, second * 1000)
        if second >= 30:
            found.append(patience.giving_up_per_s)
    return found


def test_a_crowd_that_came_at_once_is_not_taken_to_wait_for_ever() -> None:
    rates = rates_in_a_crowd(1_200)
    assert min(rates) > 1 / 2_500, "nobody can be lost before the third try"
    assert max(rates) < 1 / 900
    assert max(rates_in_a_crowd(36_000)) < 1 / 9_000, "strays say that hardly anybody goes"


def rate_in_a_line(mean_s: float, wait_s: int, credited: bool) -> float:
    """Of giving up, the mean of ten minutes, as learnt from a line of so long a wait."""
    draw, patience = Random(2), Patience(0)
    ends: dict[int, list[tuple[int, str]]] = {}
    line: dict[int, int] = {}
    rates = []
    for second in range(900):
        for _ in range(20):
            due_s, leaves_s, tries = 2.0, draw.expovariate(1 / mean_s), 0
            while due_s < min(leaves_s, wait_s):
                due_s += draw.uniform(0.9, 1.1) * min(20.0, max(2.0, (wait_s - due_s) / 3))
                tries += 1
            end = "entered" if leaves_s >= wait_s else "lost" if tries > 1 else "stray"
            at_s = wait_s if end == "entered" else due_s + 4
            ends.setdefault(second + int(at_s), []).append((second, end))
        line[second] = 20
        seen = Counter[str]()
        for came_s, end in ends.pop(second, []):
            line[came_s] -= 1
            seen[end] += 1
        patience.pass_time(second * 1000)
        patience.count(20, seen["lost"] + seen["stray"], seen["stray"])
        rows = [
            (came_s, count, min(20.0, max(2.0, (wait_s - second + came_s) / 3)))
            for came_s, count in line.items()
            if count
        ]
        patience.judge(rows, seen["entered"] if credited else 0, second * 1000)
        if second >= 300:
            rates.append(patience.giving_up_per_s)
    return fmean(rates)


@pytest.mark.parametrize("wait_s", [40, 90])
def test_all_waiting_of_those_who_enter_counts(wait_s: int) -> None:
    """Without their last seconds people who enter after 90 were taken to give up a fifth sooner."""
    assert rate_in_a_line(600, wait_s, credited=True) == pytest.approx(1 / 600, rel=0.08)
    assert rate_in_a_line(600, wait_s, credited=False) > 1.1 / 600


def test_waiting_that_is_counted_before_its_losses_can_be_seen_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience_of, "judged_s", lambda age_s, _: max(0.0, age_s - 34))
    assert min(rates_in_a_crowd(1_200)) < 1 / 5_000
