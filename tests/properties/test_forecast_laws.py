"""Laws of the forecast: what must hold for every room, regardless of what was learnt."""

from collections import Counter
from itertools import pairwise
from math import ceil, exp, log
from random import Random
from typing import Any

import msgspec
import pytest
from admission_world import START_MS, HandClock, answer_of, bits, small_room, ticket_id
from examples import examples
from forecast_rooms import Past, quantiles, report, wait_reader_on
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.admission.forecast.fluid import (
    STEPS_MAX,
    WINDOW_STEPS,
    admissions,
    ends_of_the_living,
)
from greenroom.admission.forecast.forecast import BELIEVED_ENDS, Forecaster, ForecastInput
from greenroom.admission.forecast.lottery import LotteryForecast, drifted, hazards
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.waits import not_before
from greenroom.admission.messages.wait_reader import STALE_MS, WaitReader
from greenroom.admission.messages.wait_table import (
    BELIEVED_S,
    HAZARDS,
    LEADS_S,
    OFFSET_S,
    WIDEST,
    WaitTable,
    between,
)
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import CHANGES, Estimate, Standing, make_key

pasts = st.fixed_dictionaries(
    {
        "total": st.integers(1, 400),
        "per_minute": st.integers(1, 400),
        "method": st.sampled_from(["fifo", "random"]),
        "stay_s": st.sampled_from([(1, 10), (40, 160), (100, 101), (5, 900)]),
        "minutes": st.integers(0, 5),
        "lost_in_thousand": st.sampled_from([0, 50, 400]),
        "seed": st.integers(0, 99),
    }
)
widths = st.tuples(
    st.floats(-WIDEST, 0), st.just(0.0), st.floats(0, WIDEST), st.floats(0, WIDEST)
).map(lambda drawn: tuple(sorted(drawn)))
gaps = st.lists(st.floats(0.01, 1000), min_size=40, max_size=40)


@st.composite
def sketches(draw: st.DrawFn) -> WaitTable:
    """Any sketch of a line that could travel, with any widths."""
    people, seconds = [0.0], [1.0]
    for more, later in zip(draw(gaps), draw(gaps), strict=True):
        people.append(people[-1] + more)
        seconds.append(seconds[-1] + later)
    knots = draw(st.integers(2, 41))
    return WaitTable(
        START_MS,
        tuple(people[:knots]),
        tuple(seconds[:knots]),
        tuple(draw(widths) for _ in LEADS_S),
        strays_per_s=draw(st.floats(0, 5)),
    )


@settings(max_examples=examples(100), deadline=None)
@given(sketches(), st.integers(0, 300_000), st.lists(st.floats(0, 2_000), min_size=2, max_size=20))
def test_a_visitor_who_stands_further_back_is_never_told_less(
    wait_table: WaitTable, age_ms: int, places: list[float]
) -> None:
    wait_reader, now_ms = wait_reader_on(wait_table), START_MS + age_ms
    told = [wait_reader.fifo(place, START_MS - 60_000, now_ms) for place in sorted(places)]
    known = [quantiles(estimate) for estimate in told if estimate]
    assert None not in told[: len(known)]  # known up to somewhere, and unknown from there on
    for column in zip(*known, strict=True):
        assert all(after >= before - 1e-6 for before, after in pairwise(column))


def told_over_time(
    here: float, elsewhere: int, per_s: float, permit_s: float, known_permit_s: float
) -> list[float]:
    """When somebody gets in, as told every 256 ms while so many permits a second go to the visitors
    ahead, wherever these are, until only this one has none. Each is used after `permit_s`.
    """
    wait_table = WaitTable(
        START_MS,
        (0.0, 10_000.0 * per_s),
        (permit_s, 10_000.0 + permit_s),
        ((-0.1, 0.0, 0.1, 0.2),) * len(LEADS_S),
        ahead=((START_MS // 1000 - 90, elsewhere),),
        permit_s=known_permit_s,
    )
    wait_reader, found = wait_reader_on(wait_table), []
    for age_ms in range(0, min(9_000, int(1_000 * (here + elsewhere - 1) / per_s)) + 1, 256):
        left = here * (1 - per_s * age_ms / 1000 / (here + elsewhere))
        estimate = wait_reader.fifo(left, START_MS - 60_000, START_MS + age_ms)
        assert estimate
        found.append(estimate.p50_s + age_ms / 1000)
    return found


rooms_of_data_centers = given(
    st.floats(1, 300), st.integers(0, 3_000), st.floats(0.5, 50), st.floats(0, 3)
)


@rooms_of_data_centers
def test_the_moment_told_stays_while_permits_come_as_forecast(
    here: float, elsewhere: int, per_s: float, permit_s: float
) -> None:
    right_s = (here + elsewhere - 0.5) / per_s + permit_s
    for told_s in told_over_time(here, elsewhere, per_s, permit_s, permit_s):
        assert told_s == pytest.approx(right_s, abs=0.01)


def test_a_table_that_takes_permits_for_admissions_is_found_out() -> None:
    assert min(told_over_time(300, 0, 20, 1.5, 0.0)) < 15 + 1.5 - 1.0


@settings(max_examples=examples(100), deadline=None)
@given(sketches(), st.integers(0, 300_000), st.floats(0, 2_000), st.integers(-60_000, 60_000))
def test_quantiles_are_in_order_and_no_wait_is_negative(
    wait_table: WaitTable, age_ms: int, place: float, came_ms: int
) -> None:
    estimate = wait_reader_on(wait_table).fifo(place, START_MS + came_ms, START_MS + age_ms)
    if estimate:
        values = quantiles(estimate)
        assert values[0] >= 0
        assert list(values) == sorted(values)


@settings(max_examples=examples(60), deadline=None)
@given(sketches(), st.floats(0, 500))
def test_what_is_old_is_said_to_be_old_and_believed_less(
    wait_table: WaitTable, place: float
) -> None:
    wait_reader = wait_reader_on(wait_table)
    fresh = wait_reader.fifo(place, START_MS - 60_000, START_MS + STALE_MS)
    old = wait_reader.fifo(place, START_MS - 60_000, START_MS + STALE_MS + 30_000)
    if fresh and old and old.p25_s > 0:
        assert (fresh.change, old.change) == ("", "stale")
        assert old.p75_s + 34 + OFFSET_S >= 1.9 * (
            old.p25_s + 34 + OFFSET_S
        )  # counted from when the table was made


@settings(max_examples=examples(25), deadline=None)
@given(pasts, st.integers(1, 3_000))
def test_a_forecast_is_a_short_table_that_ascends_ends_at_a_day_and_can_travel(
    past: dict[str, Any], waiting: int
) -> None:
    wait_table = Past(**past).wait_table(waiting)
    assert all(after > before for before, after in pairwise(wait_table.people))
    assert all(after > before for before, after in pairwise(wait_table.seconds))
    assert len(wait_table.people) == len(wait_table.seconds) <= 200
    assert wait_table.seconds[-1] <= BELIEVED_S
    assert wait_table.random or wait_table.seconds[0] >= wait_table.permit_s > 0
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(wait_table), type=WaitTable) == wait_table


@settings(max_examples=examples(10), deadline=None)
@given(pasts, st.integers(1, 3_000))
def test_the_same_reports_make_the_same_forecast(past: dict[str, Any], waiting: int) -> None:
    assert Past(**past).wait_table(waiting) == Past(**past).wait_table(waiting)


anything = st.integers(0, 10) | st.integers(0, 10**9)
wild_reports = st.fixed_dictionaries(
    {
        "data_center": st.sampled_from(["here", "there"]),
        "epoch": st.integers(0, 2),
        "ended": st.dictionaries(st.integers(0, 3_000), anything, max_size=4).map(
            lambda counts: tuple(counts.items())
        ),
        "joined": anything,
        "lost": st.integers(-(10**9), 10**9),
        "strays": anything,
        "front_s": st.just(0) | st.integers(START_MS // 1000 - 100, START_MS // 1000 + 100),
    }
)
wild_facts = st.builds(
    lambda sessions, permits, free, ended, seconds, returning: ForecastInput(
        sessions, permits, free, sum(seconds.values()), ended, {START_MS // 1000 + second: count for second, count in seconds.items()},
        (), tuple(returning),
    ),
    st.dictionaries(st.sampled_from(["here", "there"]), anything), anything, anything, anything,
    st.dictionaries(st.integers(-4_000, 100), st.integers(1, 10**6), max_size=30),
    st.lists(st.tuples(st.integers(-100, 10**9).map(float), anything), max_size=3),
)  # fmt: skip
ages = st.lists(st.integers(0, 60_000) | st.integers(0, 10**8), max_size=5)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(["fifo", "random"]),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.lists(
        st.tuples(st.integers(0, 90_000), wild_reports, ages, wild_facts), min_size=1, max_size=12
    ),
)
def test_no_reports_make_a_forecast_fail(
    method: str,
    total: int,
    per_minute: int,
    told: list[tuple[int, dict[str, Any], list[int], ForecastInput]],
) -> None:
    """It is made while the coordinator answers: if it raised, no visitor would be let in any more."""
    now_ms = START_MS
    room = small_room(
        total_active_users=total, new_users_per_minute=per_minute, queueing_method=method
    )
    forecaster = Forecaster(room, now_ms)
    for number, (passed_ms, said, ages_ms, facts) in enumerate(told):
        now_ms += passed_ms
        forecaster.meet("there", now_ms)
        forecaster.admitted("here", ages_ms, now_ms)
        forecaster.hear(report(number, **said), now_ms)
        forecaster.think(facts, now_ms)
        wait_table = forecaster.wait_table
        if wait_table is None:
            continue
        assert all(after > before for before, after in pairwise(wait_table.seconds))
        assert all(after >= before for before, after in pairwise(wait_table.people))
        forecaster.wait_table_for(facts.seconds, facts.seconds)
        wait_reader = wait_reader_on(wait_table)
        for place in (1, 50, 10**6):
            found = (
                wait_reader.random(START_MS, now_ms)
                if method == "random"
                else wait_reader.fifo(place, START_MS, now_ms)
            )
            assert found is None or 0 <= found.p50_s <= 4 * BELIEVED_S


@pytest.mark.parametrize("method", ["fifo", "random"])
@pytest.mark.parametrize("stay_s", [(40, 160), (100, 101)])
def test_a_room_three_times_as_large_with_three_times_the_line_waits_as_long(
    method: str, stay_s: tuple[int, int]
) -> None:
    one = Past(method=method, stay_s=stay_s)
    three = Past(method=method, stay_s=stay_s, times=3)
    small, large = wait_reader_on(one.wait_table(700)), wait_reader_on(three.wait_table(2_100))
    for place in (1, 10, 70, 300, 700):
        came_ms = one.now_ms - 60_000
        said = [
            wait_reader.random(came_ms, one.now_ms)
            if method == "random"
            else wait_reader.fifo(times * place, came_ms, one.now_ms)
            for times, wait_reader in ((1, small), (3, large))
        ]
        assert said[0]
        assert said[1]
        assert said[0].p50_s == pytest.approx(said[1].p50_s, rel=0.03, abs=1)


@given(
    st.lists(st.floats(0, 50), min_size=30, max_size=200),
    st.floats(0.001, 0.6),
    st.floats(0, 300),
    st.integers(0, 100),
    st.integers(1, 500),
    st.lists(st.integers(0, 20), min_size=WINDOW_STEPS, max_size=WINDOW_STEPS),
    st.floats(0, 4),
)
def test_no_visitor_is_forecast_to_enter_beyond_either_limit(
    living: list[float],
    hazard: float,
    free: float,
    permits: int,
    per_minute: int,
    recent: list[int],
    idle_s: float,
) -> None:
    survival = [(1 - hazard) ** step for step in range(len(living) + 1)]
    ends = ends_of_the_living(living, survival, 0.3, STEPS_MAX)
    assert min(ends) >= 0
    assert sum(ends) <= sum(living) + 1e-6
    entered = admissions(ends, survival, free, permits, per_minute, recent, float("inf"), idle_s)
    begun = [float(permits), *entered]
    for step in range(1, len(begun)):
        lived = [
            0,
            *(step - one + 1 for one in range(step - 1, -1, -1)),
        ]  # in steps, the newest first
        newly = sum(
            count * survival[min(age, len(living))]
            for count, age in zip(reversed(begun[: step + 1]), lived, strict=True)
        )
        assert newly + sum(living) - sum(ends[:step]) <= sum(living) + permits + free + 1e-6
    window = [float(count) for count in recent[:-1]] + [float(recent[-1] + permits)] + entered
    spent = sum(recent) + permits
    for start in range(1, len(window) - WINDOW_STEPS + 1):
        assert sum(window[start : start + WINDOW_STEPS]) <= max(per_minute, spent) + 1e-6


@given(st.integers(10, 10_000), st.floats(0.1, 20))
def test_a_draw_among_as_many_as_come_is_memoryless(present: int, per_s: float) -> None:
    """As many join as get in, so everybody's hazard is constant."""
    drawn = min(per_s, present / 20) * 5
    found = hazards([drawn] * STEPS_MAX, present, (drawn / 5, drawn / 5), 0.0, True)
    hazard = -log(1 - drawn / (present + drawn / 2)) / 5
    for wanted in HAZARDS:
        at_s = between(*found, wanted)
        if wanted / hazard < BELIEVED_S / 2:
            assert at_s == pytest.approx(wanted / hazard, rel=0.05)


@given(st.integers(1, 500), st.floats(0.5, 50))
def test_a_draw_that_no_one_joins_any_more_is_over_when_as_many_were_let_in_as_were_there(
    present: int, drawn: float
) -> None:
    people, seconds = hazards([drawn] * STEPS_MAX, present, (0.0, 0.0), 0.0, True)
    median_s = between(people, seconds, HAZARDS[1])
    if present <= drawn * STEPS_MAX:
        assert median_s == pytest.approx(5 * present / drawn / 2, rel=0.1, abs=6)


def test_quantiles_of_a_draw_move_to_where_the_share_that_is_in_is_theirs() -> None:
    """Everybody gets in 15 per cent faster than the table says."""
    draws = LotteryForecast()
    table = (tuple(0.01 * step for step in range(700)), tuple(5.0 * step for step in range(700)))
    for number in range(200):
        made_ms = START_MS + number * 10_000
        draws.expect(made_ms, 10_000, table)
        for passed_s in range(0, 1_600, 5):
            left = int(10_000 * exp(-0.01 * 1.15 * passed_s / 5))
            draws.judge({made_ms // 1000 - 1: left}, 0.0, made_ms + passed_s * 1_000)
    for width in draws.widths[0][:3]:
        assert width == pytest.approx(-log(1.15), abs=0.04)


class Door:
    """A full room with a line, and how many requests without cookies come each second."""

    def __init__(self, noise: int) -> None:
        self.noise = noise
        self.clock = HandClock()
        self.ledger = MemoryLedger(
            small_room(total_active_users=20, new_users_per_minute=60), self.clock, bits(3)
        )
        self.told: list[tuple[int, Estimate | None]] = []

    def run(self) -> list[tuple[int, Estimate | None]]:
        due: dict[int, int] = {}
        strangers = 10_000
        for second in range(900):
            self.clock.ms = START_MS + second * 1_000
            self.ledger.tick()
            if second % 2 == 0 and second < 400:
                due[second] = 0
            for number in sorted(due):
                if due[number] <= self.clock.ms:
                    self._tries(number, due)
            for _ in range(self.noise if len(self.ledger.ledger.line) > 2 else 0):
                strangers += 1
                outcome = answer_of(
                    self.ledger.arrive, ticket_id(strangers), make_key(self.clock.ms, 0)
                )
                assert outcome.position == 0
        return self.told

    def _tries(self, number: int, due: dict[int, int]) -> None:
        outcome = answer_of(
            self.ledger.poll, ticket_id(number), make_key(START_MS + number * 1_000, number)
        )
        if outcome.standing is Standing.WAITING:
            self.told.append((number, outcome.estimate))
            due[number] = self.clock.ms + outcome.refresh_ms // 1_000 * 1_000
            if outcome.estimate:
                assert outcome.estimate.p25_s * 1_000 >= outcome.refresh_ms
        else:
            del due[number]


def test_requests_without_cookies_change_no_estimate() -> None:
    calm = Door(0)
    flooded = Door(7)
    flooded.ledger._getrandbits = lambda count: (
        1 << count - 1
    )  # the same luck for everybody in both worlds
    calm.ledger._getrandbits = flooded.ledger._getrandbits
    told = calm.run()
    assert len([1 for _, estimate in told if estimate]) > 500
    assert flooded.run() == told


@given(st.integers(0, 60_000), st.tuples(*[st.floats(0, 500)] * 4).map(sorted))
def test_no_visitor_gets_in_before_the_next_try(next_ms: int, seconds: list[float]) -> None:
    p25_s, p50_s, p75_s, most_s = quantiles(
        not_before(next_ms, Estimate(*seconds)) or Estimate(-1, -1, -1)
    )
    assert [p25_s, p50_s, p75_s] == [max(next_ms / 1000, value) for value in seconds[:3]]
    assert most_s == (max(next_ms / 1000, seconds[3]) if seconds[3] else 0)
    assert not_before(next_ms, None) is None


@pytest.mark.parametrize("random_bits", [0, 0x8000, 0xFFFF])
def test_a_first_page_is_told_no_moment_before_it_asks_in_whole_seconds(random_bits: int) -> None:
    ledger = Ledger(small_room(), "here", 1, START_MS)
    ledger.lease.answered_ms = START_MS
    wait_table = WaitTable(
        START_MS, (0.0, 9.0), (0.0, 1.0), ((-0.01, 0.0, 0.01, 0.02),) * len(LEADS_S)
    )
    ledger.waits.wait_reader.take(wait_table, START_MS, START_MS)
    held = ledger.arrive(b"a newcomer's", START_MS, random_bits)
    told = quantiles(held.estimate or Estimate(-1, -1, -1))
    assert told == (ceil(held.refresh_ms / 1000),) * 4


def test_before_sessions_have_ended_only_free_units_are_promised() -> None:
    past = Past(total=50, per_minute=600, stay_s=(900, 901), minutes=0)
    past.forecaster.think(
        ForecastInput({}, 0, 50, 200, 0, {START_MS // 1000 - 1: 200}), past.now_ms
    )
    wait_table = past.forecaster.wait_table
    assert wait_table
    wait_reader = wait_reader_on(wait_table)
    assert wait_reader.decides
    near = wait_reader.fifo(40, START_MS - 60_000, past.now_ms)
    assert near
    assert near.p50_s < 20
    assert wait_reader.fifo(60, START_MS - 60_000, past.now_ms) is None


def test_where_sessions_ended_but_their_ages_were_not_told_the_measured_pace_is_not_silenced() -> (
    None
):
    past = Past(minutes=0)
    past.forecaster.think(
        ForecastInput({"here": 200}, 0, 0, 100, BELIEVED_ENDS, {START_MS // 1000 - 1: 100}),
        past.now_ms,
    )
    assert past.forecaster.wait_table
    assert not wait_reader_on(past.forecaster.wait_table).decides


def test_a_line_that_is_over_is_forgotten() -> None:
    past = Past()
    past.wait_table(100)
    past.forecaster.think(past.facts(0), past.now_ms)
    assert past.forecaster.wait_table is None


def test_another_method_needs_another_sketch() -> None:
    wait_reader = wait_reader_on(Past().wait_table(100))
    wait_reader.expect(False)
    assert wait_reader.wait_table
    wait_reader.expect(True)
    assert wait_reader.wait_table is None


@settings(max_examples=examples(40), deadline=None)
@given(
    st.dictionaries(st.integers(0, 300), st.integers(1, 40), min_size=2, max_size=150),
    st.integers(0, 300),
    st.randoms(),
)
def test_two_data_centers_agree_on_who_is_before_someone(
    seconds: dict[int, int], mine: int, draw: Random
) -> None:
    """Counted here exactly, elsewhere between knots that are a tenth of the people apart."""
    first = START_MS // 1000
    whole = {first + second: count for second, count in seconds.items()}
    here = {second: draw.randint(0, count) for second, count in whole.items()}
    forecaster = Forecaster(small_room(total_active_users=200, new_users_per_minute=300), START_MS)
    forecaster.think(
        ForecastInput({"here": 200}, 0, 0, sum(whole.values()), 0, whole), START_MS + 400_000
    )
    wait_table = forecaster.wait_table_for(here, here)
    assert wait_table
    wait_reader = WaitReader()
    wait_reader.take(wait_table, START_MS + 400_000, START_MS + 400_000)
    ends_ms = (first + mine + 1) * 1_000
    own = sum(count for second, count in here.items() if second <= first + mine)
    everybody = sum(count for second, count in whole.items() if second <= first + mine)
    assert own + wait_reader._elsewhere(wait_table, ends_ms) == pytest.approx(
        everybody, rel=0.1, abs=41
    )


def test_a_table_is_read_by_places_also_where_the_method_has_just_changed() -> None:
    """And never with what was read of the table before it."""
    wait_reader = wait_reader_on(Past().wait_table(100))
    for method, waiting in (("fifo", 40), ("random", 2_000), ("fifo", 700)):
        wait_table = Past(method=method).wait_table(waiting)
        now_ms = wait_table.made_ms
        wait_reader.fifo(5, START_MS, now_ms)
        wait_reader.take(wait_table, now_ms, now_ms)
        for place in (1, 30, 400):
            fresh = wait_reader_on(wait_table).fifo(place, START_MS, now_ms)
            assert wait_reader.fifo(place, START_MS, now_ms) == fresh


@given(st.floats(0, 5_000), st.floats(0, 5_000))
def test_only_a_change_of_a_minute_and_a_quarter_is_news(expected_s: float, now_s: float) -> None:
    word = drifted(expected_s, now_s)
    assert word in ("", *CHANGES[:2])
    assert bool(word) == (abs(now_s - expected_s) >= max(60, expected_s / 4))
    assert word != "slower" or now_s > expected_s


class Serving:
    """3,000 people who came within ten minutes; only the minute holds them back."""

    def __init__(self, method: str) -> None:
        self.past = Past(total=5_000, per_minute=300, method=method, minutes=12)
        self.method = method
        self.draw = Random(1)
        self.line = [
            self.past.now_ms // 1000 - 1 - number // 5 for number in range(3_000)
        ]  # arrival seconds, the newest first

    def two_seconds(self, limit: int) -> WaitTable:
        past = self.past
        past.now_ms += 2_000
        served = [
            self.line.pop(self.draw.randrange(len(self.line)) if self.method == "random" else -1)
            for _ in range(limit // 30)
        ]
        past.forecaster.admitted("here", [0] * len(served), past.now_ms)
        past.forecaster.hear(report(10_000, front_s=served[-1]), past.now_ms)
        past.forecaster.think(
            ForecastInput(
                {"here": 500},
                0,
                4_500,
                len(self.line),
                sum(past.ended.values()),
                Counter(self.line),
            ),
            past.now_ms,
        )
        assert past.forecaster.wait_table
        return past.forecaster.wait_table


@pytest.mark.parametrize("method", ["fifo", "random"])
@pytest.mark.parametrize(("limit", "word"), [(120, "slower"), (600, "faster"), (300, "")])
def test_those_who_were_told_something_else_hear_why_and_newcomers_do_not(
    method: str, limit: int, word: str
) -> None:
    system = Serving(method)
    assert {system.two_seconds(300).change for _ in range(60)} == {""}
    system.past.forecaster.configure(
        small_room(total_active_users=5_000, new_users_per_minute=limit, queueing_method=method)
    )
    told = [system.two_seconds(limit) for _ in range(60)]
    assert {wait_table.change for wait_table in told} == {"", word}
    wait_table = next(wait_table for wait_table in told if wait_table.change == word)
    wait_reader = wait_reader_on(wait_table)
    for came_ms, said in ((wait_table.made_ms - 300_000, word), (wait_table.made_ms - 10_000, "")):
        found = (
            wait_reader.random(came_ms, wait_table.made_ms)
            if method == "random"
            else wait_reader.fifo(100, came_ms, wait_table.made_ms)
        )
        assert found
        assert found.change == said
