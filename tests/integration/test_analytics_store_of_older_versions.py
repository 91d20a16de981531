"""A store that an older greenroom wrote: today's code answers the same numbers from it and goes on
writing, and so will the next version.

`analytics_0001` in the fixtures was written by the first version that kept analytics, with what it
answered then and its tables in ClickHouse. The next version is a process (this file itself) in
which visitors can have one outcome more.
"""

import base64
import json
import lzma
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
FIRST_VERSION = json.loads((FIXTURES / "analytics_0001.json").read_text())
ROOMS = ("shop", "museum")
NEW_OUTCOME = "turned_back"


def older_file(folder: Path) -> Path:
    path = folder / "analytics.duckdb"
    path.write_bytes(
        lzma.decompress(base64.b64decode((FIXTURES / "analytics_0001.duckdb.xz.b64").read_text()))
    )
    return path


def answers(keeper: Any) -> list[Any]:
    """What the fixture has answers to: every metric that there was then, by nothing, by room and by
    day.
    """
    from greenroom.analytics.question import Question, Wanted

    found = []
    for asked in FIRST_VERSION["answers"]:
        known = [tuple(name.split(".")) for name in asked["rows"][0]]
        metrics = tuple(Wanted(*name) for name in known if name[0])
        rows = keeper.answer(
            Question(0, 1 << 32, dimensions=tuple(asked["dimensions"]), metrics=metrics)
        ).rows
        found.append(
            {
                "dimensions": asked["dimensions"],
                "rows": [{".".join(name): row[name] for name in known} for row in rows],
            }
        )
    return found


def total(keeper: Any, column: str) -> int:
    (row,) = keeper._engine.select(f"SELECT sum({column}) FROM minutes")
    return int(row[0])


def writes_three_days_more(keeper: Any, outcomes: dict[str, int]) -> int:
    """Of so many minutes in every room; hours and days of the older version become whole with them."""
    from analytics_material import BEGIN_S

    from greenroom.analytics.rollup import Part, Rollup

    minutes = range(BEGIN_S // 60 + 3 * 1440, BEGIN_S // 60 + 6 * 1440, 200)
    for minute in minutes:
        keeper.write(
            [Part("later", minute, room, Rollup(outcomes, waited={40: 1})) for room in ROOMS],
            minute * 60 + 60,
        )
    keeper.tend(minutes[-1] * 60 + 60)
    return len(minutes) * len(ROOMS)


def test_a_file_of_the_first_version_answers_what_it_answered_then_and_is_written_on(
    tmp_path: Path,
) -> None:
    from greenroom.analytics.question import Question, Wanted
    from greenroom.analytics.store.duck import DuckEngine
    from greenroom.analytics.store.keeper import Keeper

    path = older_file(tmp_path)
    for _ in range(2):
        keeper = Keeper(DuckEngine(path))
        assert answers(keeper) == FIRST_VERSION["answers"]
        assert set(keeper.rooms_of("zone")) == set(ROOMS)
        keeper.close()
    keeper = Keeper(DuckEngine(path))
    begun = total(keeper, "admitted")
    written = writes_three_days_more(keeper, {"admitted": 5})
    question = Question(
        0, 1 << 32, dimensions=("date",), metrics=(Wanted("sum", "newUsersPerMinute"),)
    )
    by_day = [row["sum", "newUsersPerMinute"] for row in keeper.answer(question).rows]
    assert len(by_day) == 6
    assert sum(map(int, by_day)) == begun + written * 5  # type: ignore[arg-type]
    keeper.close()


@pytest.mark.parametrize("engine", ["duckdb", "clickhouse"])
def test_the_next_version_adds_its_columns_to_a_store_of_the_first_and_keeps_its_numbers(
    engine: str, tmp_path: Path
) -> None:
    command = [sys.executable, __file__, engine, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    if engine == "duckdb":
        from greenroom.analytics.store.duck import DuckEngine
        from greenroom.analytics.store.engine import VERSION
        from greenroom.analytics.store.keeper import Keeper
        from greenroom.errors import StorageFailed

        with pytest.raises(StorageFailed, match=rf"newer greenroom \(version {VERSION + 1}"):
            Keeper(DuckEngine(tmp_path / "analytics.duckdb"))


# -- the next version, in a process of its own -----------------------------------------------------


def become_the_next_version() -> None:
    """As a change would: one more outcome. Before anything else is imported."""
    from greenroom.analytics.outcomes import OUTCOMES, TARGETS_SINCE, RoomOutcome

    newest = max(TARGETS_SINCE, *(row.since for row in OUTCOMES.values()))
    OUTCOMES[NEW_OUTCOME] = RoomOutcome(
        NEW_OUTCOME, "usersTurnedBack", "users", "Turned back", "", since=newest + 1
    )


def first_version(engine: str, folder: Path) -> Any:
    """A store as the first version left it."""
    from greenroom.analytics.store.duck import DuckEngine

    if engine == "duckdb":
        return DuckEngine(older_file(folder))
    import clickhouse_connect
    import duckdb

    from greenroom.analytics.store.click import ClickEngine

    where = f"chdb://{mkdtemp(dir=folder)}"
    client = clickhouse_connect.get_client(dsn=where)
    for statement in FIRST_VERSION["clickhouse"]:
        client.command(statement)
    with duckdb.connect(str(older_file(folder))) as connection:
        for table in ("parts", "minutes", "hours", "days", "rooms", "facts"):
            found = connection.execute(f"SELECT *, 1 AS version FROM {table}")
            client.insert(
                table,
                found.fetchall(),
                column_names=[column[0] for column in found.description or ()],
            )
    return ClickEngine(where, "chdb")


def upgrade(engine: str, folder: Path) -> None:
    """The scenario, in a process of the next version."""
    become_the_next_version()
    from greenroom.analytics.store.engine import VERSION
    from greenroom.analytics.store.keeper import Keeper

    store = first_version(engine, folder)
    assert [name for (name,) in store.select("SELECT name FROM facts WHERE value = 1")] == [
        "version"
    ]
    for _ in range(2):
        keeper = Keeper(store)
        assert answers(keeper) == FIRST_VERSION["answers"], "the numbers of before"
        assert total(keeper, NEW_OUTCOME) == 0
        assert keeper._facts["version"] == VERSION
    written = writes_three_days_more(keeper, {"admitted": 2, NEW_OUTCOME: 3})
    assert total(keeper, NEW_OUTCOME) == 3 * written
    for table in ("hours", "days"):
        ((kept,),) = store.select(f"SELECT sum({NEW_OUTCOME}_sum) FROM {table}")
        assert 0 < kept <= 3 * written, f"{table} have it as well"
    keeper.close()


if __name__ == "__main__":
    upgrade(sys.argv[1], Path(sys.argv[2]))
