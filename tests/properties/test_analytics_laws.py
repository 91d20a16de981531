"""Laws of analytics: histograms are true to three digits, merging has no order, and rolled-up
tables answer like raw minutes.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from examples import examples
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from analytics_material import (
    ALL_WANTED,
    BEGIN_S,
    a_rollup,
    nearest_rank,
    oracle,
    parts_of,
    rollups,
)

from greenroom.analytics import histogram
from greenroom.analytics.columns import KEPT, MINUTE_COLUMNS, TIMES
from greenroom.analytics.metrics import DAY_S, DIMENSIONS, METRICS
from greenroom.analytics.question import (
    AllOf,
    AnyOf,
    DimensionFilter,
    Known,
    Question,
    Wanted,
    pieces,
    span_of,
)
from greenroom.analytics.rollup import PERCENTS, SLOTS, Part, merge, minute_row, together
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper, Retention

pytestmark = pytest.mark.slow

times = st.lists(st.integers(0, histogram.HIGHEST_MS), min_size=1, max_size=60)


def counted(values: list[int]) -> histogram.HistogramCounts:
    counts: histogram.HistogramCounts = {}
    for value in values:
        histogram.record(counts, value)
    return counts


@given(st.integers(0, histogram.HIGHEST_MS))
def test_a_bucket_holds_its_values_and_is_three_digits_narrow(value: int) -> None:
    bucket = histogram.bucket_of(value)
    low, high = histogram.lowest_of(bucket), histogram.highest_of(bucket)
    assert low <= value <= high
    assert (high - low) * 1_000 <= value


@given(st.integers(0, histogram.bucket_of(histogram.HIGHEST_MS) - 1))
def test_buckets_follow_each_other_without_a_gap(bucket: int) -> None:
    assert histogram.highest_of(bucket) + 1 == histogram.lowest_of(bucket + 1)
    assert (
        histogram.bucket_of(histogram.lowest_of(bucket))
        == histogram.bucket_of(histogram.highest_of(bucket))
        == bucket
    )


@given(times)
def test_a_percentile_is_the_nearest_rank_within_a_thousandth(values: list[int]) -> None:
    found = histogram.percentiles(counted(values), PERCENTS)
    for percent, value in zip(PERCENTS, found, strict=True):
        exact = nearest_rank(sorted(values), percent)
        assert exact <= value <= exact * 1.001 + 1


@given(times)
def test_the_published_library_counts_the_same_values_in_the_same_buckets(
    values: list[int],
) -> None:
    counts = counted(values)
    theirs = HdrHistogram(1, histogram.HIGHEST_MS, 3)
    for value in values:
        theirs.record_value(value)
    assert theirs.get_total_count() == len(values)
    assert {
        histogram.bucket_of(item.value_iterated_to): item.count_at_value_iterated_to
        for item in theirs.get_recorded_iterator()
    } == counts
    assert theirs.get_max_value() == histogram.highest_of(max(counts))


@given(times, times)
def test_adding_histograms_is_counting_all_their_values(one: list[int], other: list[int]) -> None:
    packed = [histogram.packed(counted(values)) for values in (one, other)]
    assert histogram.merged(packed) == counted(one + other)
    assert histogram.packed(histogram.merged(packed)) == histogram.packed(counted(other + one))


def test_times_beyond_the_range_count_as_its_ends() -> None:
    assert counted([-5, histogram.HIGHEST_MS + 1]) == counted([0, histogram.HIGHEST_MS])
    assert histogram.percentiles({}, PERCENTS) == (0,) * len(PERCENTS)
    assert histogram.merged([b""]) == {}


@given(rollups, rollups, rollups)
def test_merging_has_neither_order_nor_grouping(one: Any, two: Any, three: Any) -> None:
    assert (
        merge([merge([one, two]), three])
        == merge([one, merge([two, three])])
        == merge([three, one, two])
    )
    assert minute_row(merge([one, two, three])) == minute_row(merge([three, two, one]))


def test_the_peak_of_a_room_is_a_sum_at_one_moment_and_never_of_two() -> None:
    from greenroom.analytics.rollup import SLOTS, GaugeTrack, Rollup

    early = GaugeTrack((90,) + (10,) * (SLOTS - 1), (0,) * SLOTS)
    late = GaugeTrack((10,) * (SLOTS - 1) + (90,), (0,) * SLOTS)
    row = minute_row(merge([Rollup(tracks={"one": early}), Rollup(tracks={"two": late})]))
    assert row["active_max"] == 100
    assert row["active_min"] == 20


@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.sets(st.integers(0, SLOTS - 1), min_size=1)),
        min_size=1,
        max_size=4,
    )
)
def test_a_sample_that_one_data_center_misses_changes_no_figure(
    centers: list[tuple[int, set[int]]],
) -> None:
    tracks = [
        tuple(count if slot in sampled else -1 for slot in range(SLOTS))
        for count, sampled in centers
    ]
    anywhere = set[int]().union(*(sampled for _, sampled in centers))
    assert together(tracks) == [sum(count for count, _ in centers)] * len(anywhere)


def test_every_metric_names_columns_that_exist() -> None:
    percentiles = {f"{time}_p{percent}" for time in TIMES for percent in PERCENTS}
    for metric in METRICS.values():
        assert metric.raw is None or metric.raw.column in MINUTE_COLUMNS
        for aggregate, share in metric.aggregates.items():
            known = percentiles if aggregate == "percentile" else set(KEPT)
            assert {name for name in (share.column, share.over) if name} <= known


# -- questions -------------------------------------------------------------------------------------


@given(
    st.integers(0, 400),
    st.integers(0, 400),
    st.sampled_from([60, 300, 900, 3_600, 86_400]),
    st.integers(0, 400),
    st.integers(0, 20),
)
def test_pieces_cover_the_span_once_and_use_only_what_is_whole(
    start: int, length: int, finest: int, hours: int, days: int
) -> None:
    start_s, end_s = start * 600, (start + length) * 600
    known = Known(hours * 3_600, min(days * 86_400, hours * 3_600 // 86_400 * 86_400))
    found = pieces(start_s, end_s, finest, known)
    at_s = start_s
    for piece in found:
        width, whole_s = {
            "minutes": (60, end_s),
            "hours": (3_600, known.hours_to_s),
            "days": (86_400, known.days_to_s),
        }[piece.table]
        assert piece.start_s == at_s < piece.end_s <= whole_s
        assert piece.start_s % width == piece.end_s % width == 0
        assert finest % width == 0
        at_s = piece.end_s
    assert at_s == end_s or (start_s == end_s and not found)


@pytest.mark.parametrize("op", ["eq", "gt", "geq", "lt", "leq"])
@given(data=st.data())
def test_a_span_is_what_its_conditions_say_minute_by_minute(op: str, data: st.DataObject) -> None:
    name = data.draw(
        st.sampled_from([name for name, found in DIMENSIONS.items() if found.bucket_s])
    )
    value = BEGIN_S + data.draw(
        st.integers(-4_000, 4_000) | st.integers(-70, 70).map(lambda minute: minute * 60)
    )
    span = span_of(DimensionFilter(name, op, (value,)))
    width = DIMENSIONS[name].bucket_s
    for t in (
        value // 60 * 60 + step * 60 for step in (*range(-3, 4), -1_500, 1_500, -61, 61, 60, -60)
    ):
        begin = t - t % width
        holds = {
            "eq": begin == value,
            "gt": begin > value,
            "geq": begin >= value,
            "lt": begin < value,
            "leq": begin <= value,
        }[op]
        assert (span.start_s <= t < span.end_s) == holds


def test_a_time_range_says_the_same_inside_another_and() -> None:
    begin, end = (
        DimensionFilter("datetime", "geq", (BEGIN_S,)),
        DimensionFilter("datetime", "lt", (BEGIN_S + 3_600,)),
    )
    room = DimensionFilter("waitingRoomId", "in", ("r1",))
    assert span_of(AllOf((AllOf((begin, AllOf((end,)))), room))) == span_of(
        AllOf((begin, end, room))
    )


ROOMS = ("r1", "r2", "r3")
HOURS = 27
WRITTEN_EVERY = 13
"""Minutes: each hour is written four or five times, out of step with it."""


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[Keeper, list[Part]]]:
    """A store that has lived through 27 hours from 22:13 on, two sources, some parts late, repeated
    or out of order.
    """
    rng = random.Random(12)
    first = BEGIN_S // 60 - 107
    parts = parts_of(rng, range(first, first + HOURS * 60), ROOMS, ("one", "two"))
    with TemporaryDirectory() as folder:
        keeper = Keeper(DuckEngine(Path(folder) / "analytics.duckdb"))
        waiting: list[Part] = []
        gathered: list[Part] = []
        by_minute: dict[int, list[Part]] = {}
        for part in parts:
            by_minute.setdefault(part.minute, []).append(part)
        for minute in sorted(by_minute):
            delayed = [part for part in by_minute[minute] if rng.random() < 0.02]
            waiting += delayed
            now = [part for part in by_minute[minute] if part not in delayed]
            if minute % 97 == 0:
                now, waiting = [*now, *now[:2], *waiting], []
            gathered += now
            if minute % WRITTEN_EVERY == 0:
                keeper.write(gathered, (minute + 1) * 60)
                gathered = []
            if minute % 31 == 0:
                keeper.tend((minute + 1) * 60)
        keeper.write([*gathered, *waiting], (max(by_minute) + 1) * 60)
        yield keeper, parts
        keeper.close()


def same(rows: Any, expected: Any, dimensions: tuple[str, ...]) -> None:
    def by_key(found: Any) -> dict[tuple[str, ...], dict[Any, Any]]:
        return {
            tuple(str(row["", name]) for name in dimensions): {tuple(k): v for k, v in row.items()}
            for row in found
        }

    assert by_key(rows) == by_key(expected)
    assert len(rows) == len(expected)


def every(*dimensions: str, **more: Any) -> Question:
    return Question(
        0,
        1 << 32,
        dimensions=dimensions,
        metrics=tuple(Wanted(*wanted) for wanted in ALL_WANTED),
        **more,
    )


moments = st.integers(-120, HOURS * 60).map(lambda minute: BEGIN_S + minute * 60) | st.integers(
    -3, 30
).map(lambda hour: BEGIN_S + hour * 3_600)
bucketed = [name for name, found in DIMENSIONS.items() if found.bucket_s]
conditions = st.builds(
    DimensionFilter,
    st.sampled_from(bucketed),
    st.sampled_from(["eq", "neq", "gt", "geq", "lt", "leq", "in", "notin"]),
    st.tuples(moments),
) | st.builds(
    DimensionFilter,
    st.just("waitingRoomId"),
    st.sampled_from(["in", "notin"]),
    st.sets(st.sampled_from((*ROOMS, "other"))).map(tuple),
)
filters = st.recursive(
    conditions,
    lambda inner: (
        st.builds(AllOf, st.lists(inner, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=5,
)


@settings(max_examples=examples(30), deadline=None)
@given(
    start=moments,
    end=moments,
    dimensions=st.lists(st.sampled_from(list(DIMENSIONS)), max_size=2, unique=True).map(tuple),
    rooms=st.none() | st.frozensets(st.sampled_from((*ROOMS, "other"))),
    found=st.none() | filters,
)
def test_rolled_up_answers_are_those_of_the_raw_minutes(
    filled: tuple[Keeper, list[Part]],
    start: int,
    end: int,
    dimensions: tuple[str, ...],
    rooms: Any,
    found: Any,
) -> None:
    keeper, parts = filled
    question = Question(
        start,
        end,
        rooms,
        dimensions,
        tuple(Wanted(*wanted) for wanted in ALL_WANTED),
        found,
        limit=10_000,
    )
    same(keeper.answer(question).rows, oracle(parts, question), dimensions)


def test_the_whole_store_answers_like_the_parts_it_was_given(
    filled: tuple[Keeper, list[Part]],
) -> None:
    keeper, parts = filled
    for dimensions in ((), ("date",), ("datetimeHour", "waitingRoomId"), ("datetimeFiveMinutes",)):
        same(keeper.answer(every(*dimensions)).rows, oracle(parts, every(*dimensions)), dimensions)


def test_everything_delivered_again_changes_nothing(filled: tuple[Keeper, list[Part]]) -> None:
    keeper, parts = filled
    now_s = max(part.minute for part in parts) * 60
    recent = [part for part in parts if part.minute * 60 > now_s - 3_600]
    written = keeper.write(recent, now_s)
    assert (written.taken, written.repeated) == (0, len(recent))
    same(keeper.answer(every()).rows, oracle(parts, every()), ())


def test_what_nothing_is_known_of_any_more_is_refused_and_not_counted_twice(
    filled: tuple[Keeper, list[Part]],
) -> None:
    keeper, parts = filled
    now_s = max(part.minute for part in parts) * 60
    old = [Part("three", (now_s - 7 * 3_600) // 60, "r1", a_rollup(random.Random(1)))]
    assert keeper.write(old, now_s).late == 1
    same(keeper.answer(every()).rows, oracle(parts, every()), ())


@pytest.mark.parametrize("dimension", ["datetimeHour", "date"])
def test_a_time_range_in_minutes_is_answered_where_only_hours_and_days_are_kept(
    dimension: str, tmp_path: Path
) -> None:
    day = BEGIN_S // DAY_S + 1
    parts = parts_of(random.Random(5), range(day * 1_440, day * 1_440 + 120), ROOMS, ("one",))
    keeper = Keeper(DuckEngine(tmp_path / "analytics.duckdb"), retention=Retention(minutes_s=DAY_S))
    keeper.write(parts, day * DAY_S + 7_200)
    keeper.tend((day + 4) * DAY_S)
    found = AllOf(
        (
            DimensionFilter("datetime", "geq", (day * DAY_S,)),
            DimensionFilter("datetime", "lt", ((day + 1) * DAY_S,)),
        )
    )
    question = every(dimension, filter=found)
    same(keeper.answer(question).rows, oracle(parts, question), (dimension,))
    keeper.close()
