"""DuckDB and ClickHouse (chDB, through the client that a server is asked with) keep the same rows
and answer the same questions.
"""

import random
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import clickhouse_connect
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from analytics_material import ALL_WANTED, BEGIN_S, a_rollup, oracle, parts_of

from greenroom.analytics.metrics import DIMENSIONS, ROOM
from greenroom.analytics.question import (
    AllOf,
    AnyOf,
    DimensionFilter,
    Order,
    Question,
    SlowAnswer,
    Wanted,
)
from greenroom.analytics.rollup import Part
from greenroom.analytics.store.click import ClickEngine
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.engine import Engine
from greenroom.analytics.store.keeper import (
    LATE_S,
    Keeper,
    Retention,
    RoomPlace,
)
from greenroom.errors import StorageFailed

FIRST = BEGIN_S // 60 + 130
MINUTES = 150
ROOMS = ("b-room", "a-room", "c-room")


def duck(folder: Path) -> Engine:
    return DuckEngine(folder / "analytics.duckdb")


@cache
def server() -> Path:
    """chDB has one folder for each process; databases in it keep tests apart."""
    return Path(mkdtemp(prefix="greenroom-chdb-"))


def click(folder: Path) -> Engine:
    database = f"t{zlib.crc32(str(folder).encode())}"
    main = clickhouse_connect.get_client(dsn=f"chdb://{server()}")
    main.command(f"CREATE DATABASE IF NOT EXISTS {database}")
    return ClickEngine(f"chdb://{server()}?database={database}", "chdb")


ENGINES: dict[str, Callable[[Path], Engine]] = {"duckdb": duck, "clickhouse": click}


@pytest.fixture(scope="module", params=ENGINES)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Keeper, list[Part]]]:
    keeper = Keeper(
        ENGINES[request.param](tmp_path_factory.mktemp(request.param)),
        lambda room: RoomPlace("zone", room.upper()),
    )
    parts = parts_of(random.Random(5), range(FIRST, FIRST + MINUTES), ROOMS, ("one", "two"))
    late = parts[::41]
    for begin in range(0, MINUTES, 25):
        now = [
            part for part in parts if begin <= part.minute - FIRST < begin + 25 and part not in late
        ]
        now_s = (FIRST + begin + 26) * 60
        keeper.write(now, now_s)
        keeper.tend(now_s)
    now_s = (FIRST + MINUTES + 1) * 60
    keeper.write([*late, *parts[:30]], now_s)
    keeper.tend(now_s)
    yield keeper, parts
    keeper.close()


def every(*dimensions: str, **more: object) -> Question:
    return Question(
        0,
        1 << 32,
        dimensions=dimensions,
        metrics=tuple(Wanted(*wanted) for wanted in ALL_WANTED),
        **more,
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "dimensions",
    [(), ("date",), ("datetimeHour", ROOM), ("datetimeFiveMinutes",), (ROOM,), ("datetime", ROOM)],
)
def test_every_metric_by_every_dimension(
    filled: tuple[Keeper, list[Part]], dimensions: tuple[str, ...]
) -> None:
    keeper, parts = filled

    def by_key(rows: object) -> dict[tuple[str, ...], dict[tuple[str, str], object]]:
        return {
            tuple(str(row["", name]) for name in dimensions): {tuple(key): row[key] for key in row}
            for row in rows
        }  # type: ignore[attr-defined, misc]

    assert by_key(keeper.answer(every(*dimensions)).rows) == by_key(
        oracle(parts, every(*dimensions))
    )


hours = st.integers(BEGIN_S // 3_600, BEGIN_S // 3_600 + 6).map(lambda hour: hour * 3_600)
conditions = st.builds(
    DimensionFilter,
    st.sampled_from([name for name, found in DIMENSIONS.items() if found.bucket_s]),
    st.sampled_from(["eq", "neq", "gt", "leq", "in", "notin"]),
    st.tuples(hours),
) | st.builds(
    DimensionFilter,
    st.just(ROOM),
    st.sampled_from(["in", "notin"]),
    st.sets(st.sampled_from(ROOMS)).map(tuple),
)
filters = st.builds(AllOf, st.lists(conditions, max_size=3).map(tuple)) | st.builds(
    AnyOf, st.lists(conditions, max_size=3).map(tuple)
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(found=filters, start=hours, dimension=st.sampled_from(list(DIMENSIONS)))
def test_every_filter(
    filled: tuple[Keeper, list[Part]], found: object, start: int, dimension: str
) -> None:
    keeper, parts = filled
    question = Question(
        start, 1 << 32, None, (dimension,), (Wanted("sum", "newUsersPerMinute"),), found
    )  # type: ignore[arg-type]
    wanted = {
        row["", dimension]: row["sum", "newUsersPerMinute"] for row in oracle(parts, question)
    }
    assert {
        row["", dimension]: row["sum", "newUsersPerMinute"] for row in keeper.answer(question).rows
    } == wanted


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "order",
    [
        ("", ROOM),
        ("", "datetimeHour"),
        ("", "count"),
        ("avg", "totalActiveUsers"),
        ("avgWeighted", "timeOnOriginP50"),
        ("min", "totalQueuedUsers"),
    ],
)
def test_every_kind_of_order(
    filled: tuple[Keeper, list[Part]], order: tuple[str, str], descending: bool
) -> None:
    keeper, _ = filled
    question = Question(
        0,
        1 << 32,
        None,
        ("datetimeHour", ROOM),
        (
            Wanted("avg", "totalActiveUsers"),
            Wanted("avgWeighted", "timeOnOriginP50"),
            Wanted("min", "totalQueuedUsers"),
        ),
        None,
        (Order(*order, descending),),
    )
    rows = keeper.answer(question).rows
    values = [row[order] for row in rows]
    assert values == sorted(values, reverse=descending)  # type: ignore[type-var]
    assert (
        keeper.answer(
            Question(
                0,
                1 << 32,
                None,
                question.dimensions,
                question.metrics,
                None,
                question.order,
                limit=3,
            )
        ).rows
        == rows[:3]
    )


def test_raw_rows(filled: tuple[Keeper, list[Part]]) -> None:
    keeper, parts = filled
    question = Question(
        0,
        1 << 32,
        frozenset(ROOMS[:2]),
        ("datetime", ROOM),
        (Wanted("", "newUsersPerMinute"), Wanted("", "totalTimeWaitedP95")),
        None,
        (Order("", ROOM, True), Order("", "totalTimeWaitedP95")),
        1_000,
        raw=True,
    )
    rows = keeper.answer(question).rows
    wanted = oracle(
        parts,
        Question(
            0, 1 << 32, question.rooms, ("datetime", ROOM), (Wanted("sum", "newUsersPerMinute"),)
        ),
    )
    assert {(row["", "datetime"], row["", ROOM]): row["", "newUsersPerMinute"] for row in rows} == {
        (row["", "datetime"], row["", ROOM]): row["sum", "newUsersPerMinute"] for row in wanted
    }
    assert [row["", ROOM] for row in rows] == sorted(
        [str(row["", ROOM]) for row in rows], reverse=True
    )


def test_rooms_keep_their_zone_and_name_and_take_over_new_ones(
    filled: tuple[Keeper, list[Part]],
) -> None:
    keeper, _ = filled
    assert sorted(keeper.rooms_of("zone")) == sorted(ROOMS)
    assert keeper.rooms["a-room"] == RoomPlace("zone", "A-ROOM")
    assert keeper.rooms_of("elsewhere") == []


@pytest.mark.parametrize("kind", ENGINES)
def test_what_was_written_is_there_after_a_restart_and_old_rows_go(
    kind: str, tmp_path: Path
) -> None:
    day_s = 86_400
    kept = Retention(minutes_s=day_s, hours_s=2 * day_s, days_s=0)
    keeper = Keeper(ENGINES[kind](tmp_path), retention=kept)
    parts = [
        Part(
            "one", (BEGIN_S + day * day_s) // 60 + minute, "r", a_rollup(random.Random(day), busy=1)
        )
        for day in range(4)
        for minute in (0, 70)
    ]
    for number, part in enumerate(parts):
        keeper.write([part], part.minute * 60 + 60)
        if number % 2:  # once a day: chDB takes most of a second for each removal
            keeper.tend(part.minute * 60 + LATE_S)
    keeper.close()
    keeper = Keeper(ENGINES[kind](tmp_path), retention=kept)
    keeper.tend(BEGIN_S + 4 * day_s + 300)
    state = keeper.tables_state()
    assert (state.minutes_from_s - BEGIN_S) // day_s == 3
    assert (state.hours_from_s - BEGIN_S) // day_s == 2
    left = {
        name: keeper._engine.read(f"SELECT count(*), min(t) FROM {name}")
        for name in ("parts", "minutes", "hours", "days")
    }
    assert left["parts"][0][0] == 0
    assert left["minutes"] == [(2, BEGIN_S + 3 * day_s)]
    assert left["hours"] == [(4, BEGIN_S + 2 * day_s)]
    assert left["days"] == [(4, BEGIN_S)]
    by_day = keeper.answer(every("date")).rows
    assert [row["", "count"] for row in by_day] == [2] * 4
    assert {tuple(key): by_day[0][key] for key in by_day[0]} == oracle(parts[:2], every("date"))[0]
    from greenroom.analytics.question import QuestionRefused

    with pytest.raises(QuestionRefused, match="older ones are not kept"):
        keeper.answer(Question(BEGIN_S + 60, 1 << 32, dimensions=("datetimeHour",)))
    keeper.close()


@pytest.mark.parametrize("kind", ENGINES)
def test_a_write_that_is_cut_off_can_be_done_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ENGINES[kind](tmp_path)
    keeper = Keeper(engine)
    parts = parts_of(random.Random(8), range(FIRST, FIRST + 3), ROOMS, ("one", "two"))
    now_s = (FIRST + 4) * 60
    keeper.write(parts[::2], now_s)
    real, calls = engine.insert, [0]

    def failing(table: object, rows: object) -> None:
        calls[0] += 1
        if calls[0] > fails_at:
            raise StorageFailed("cut off")
        real(table, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "insert", failing)
    cut_off = 0
    for fails_at in range(40):
        calls[0] = 0
        try:
            keeper.write(parts, now_s)
        except StorageFailed:
            cut_off += 1
        else:
            break
    assert cut_off >= 3, "in the minutes, in the parts, and between"
    monkeypatch.setattr(engine, "insert", real)
    keeper.write(parts, now_s)
    (row,) = keeper.answer(every()).rows
    assert {tuple(key): row[key] for key in row} == oracle(parts, every())[0]
    keeper.close()


def test_a_question_that_takes_too_long_is_given_up(filled: tuple[Keeper, list[Part]]) -> None:
    keeper, _ = filled
    slow = "SELECT count(*) FROM minutes AS a, minutes AS b, minutes AS c, minutes AS d, minutes AS e WHERE a.t + b.t + c.t + d.t + e.t > 7"
    with pytest.raises(SlowAnswer):
        keeper._engine.select(slow, 0.2)
    assert keeper.answer(every()).rows, "and the next one is answered"


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match=r"clickhouse://127\.0\.0\.1:1/x"):
        ClickEngine("clickhouse://127.0.0.1:1/x", "clickhouse://127.0.0.1:1/x")
