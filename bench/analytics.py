"""How fast analytics answer and write: 1,000 rooms, 30 days of minutes (43 million rows).

`python bench/analytics.py [--rooms N] [--store FILE]`.

The minutes are made inside the database, so that filling takes a minute and not hours; hours and
days are worked out by the store itself.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from greenroom.analytics.columns import MINUTE_COLUMNS
from greenroom.analytics.histogram import packed, record
from greenroom.analytics.question import Order, Question, Wanted
from greenroom.analytics.recorder import Recorder
from greenroom.analytics.rollup import RoomLimits
from greenroom.analytics.store.duck import SORTED, DuckEngine
from greenroom.analytics.store.keeper import GRACE_S, Keeper

DAY_S = 86_400
BEGIN_S = 1_893_456_000
AIMS_MS = {
    "one room, 24 h by minute": 20,
    "one room, 30 days by hour": 30,
    "all rooms, 30 days": 100,
    "write a minute of all rooms": 100,
}
METRICS = (
    Wanted("max", "totalActiveUsers"),
    Wanted("max", "totalQueuedUsers"),
    Wanted("sum", "newUsersPerMinute"),
    Wanted("avgWeighted", "totalTimeWaitedP90"),
)


def fill(engine: DuckEngine, rooms: int, days: int) -> float:
    """Minutes as a day has them: quiet at night, a queue in a tenth of them."""
    busy = packed(_histogram()).hex()
    shown = {
        name: f"(hash(r, m, {place}) % {_spread(name)})::BIGINT"
        for place, name in enumerate(MINUTE_COLUMNS)
    }
    shown |= {
        "incomplete": "0",
        "generated": "0",
        "limited": "1",
        "active_samples": "12",
        "queued_samples": "12",
        "wait_samples": "12",
    }
    shown |= {
        name: f"CASE WHEN m % 10 = 0 THEN {shown[name]} ELSE 0 END"
        for name in MINUTE_COLUMNS
        if name.startswith(("waited", "origin"))
    }
    columns = ", ".join(shown[name] for name in MINUTE_COLUMNS)
    histogram = f"CASE WHEN m % 10 = 0 THEN from_hex('{busy}') ELSE ''::BLOB END"
    began = time.monotonic()
    for day in range(days):
        engine._run(
            f"INSERT INTO {SORTED} (t, room, {', '.join(MINUTE_COLUMNS)}, waited, origin) SELECT"
            f" {BEGIN_S + day * DAY_S} + m * 60, r, {columns}, {histogram}, {histogram} FROM"
            f" (SELECT h * 60 + i AS m, r FROM range(24) a(h), range(1, {rooms + 1}) b(r),"
            " range(60) c(i) ORDER BY h, r, i)"
        )
    engine._run("CHECKPOINT")
    return time.monotonic() - began


def _histogram() -> dict[int, int]:
    counts: dict[int, int] = {}
    for _ in range(60):
        record(counts, int(random.Random(1).lognormvariate(11, 1)) + len(counts) * 977)
    return counts


def _spread(name: str) -> int:
    return 100_000 if "_p" in name or name.endswith("_sum") else 500


def best_ms(work: Callable[[], Any], times: int = 7) -> tuple[float, float]:
    """The medians of a few tries, the first one left out: by the clock, and of the processor over
    all threads.
    """
    took, spent = [], []
    for _ in range(times):
        began, cpu = time.perf_counter(), time.process_time()
        work()
        took.append((time.perf_counter() - began) * 1_000)
        spent.append((time.process_time() - cpu) * 1_000)
    return sorted(took[1:])[(times - 1) // 2], sorted(spent[1:])[(times - 1) // 2]


def say(label: str, figures: tuple[float, float], unit: str = "ms") -> None:
    value, cpu = figures
    aim = AIMS_MS.get(label)
    mark = "" if aim is None else f"   aim {aim} {unit}{'' if value <= aim else '   MISSED'}"
    print(f"{label:42} {value:10.1f} {unit}   processor {cpu:.1f} {unit}{mark}", flush=True)


def questions(keeper: Keeper, rooms: int, days: int) -> None:
    end_s = BEGIN_S + days * DAY_S
    middle = frozenset({f"room-{rooms // 2}"})
    day = Question(
        end_s - 2 * DAY_S,
        end_s - DAY_S,
        middle,
        ("datetimeMinute",),
        METRICS,
        None,
        (Order("", "datetimeMinute"),),
    )
    month = Question(
        BEGIN_S, end_s, middle, ("datetimeHour",), METRICS, None, (Order("", "datetimeHour"),)
    )
    everything = Question(BEGIN_S, end_s, None, ("waitingRoomId",), METRICS)
    total = Question(BEGIN_S, end_s, None, (), METRICS)
    quarters = Question(
        end_s - 2 * DAY_S,
        end_s - DAY_S,
        middle,
        ("datetimeFifteenMinutes",),
        (Wanted("percentile", "totalTimeWaitedP95"),),
    )
    percentiles = Question(
        BEGIN_S, end_s, middle, ("date",), (Wanted("percentile", "totalTimeWaitedP95"),)
    )
    say("one room, 24 h by minute", best_ms(lambda: keeper.answer(day)))
    say("one room, 30 days by hour", best_ms(lambda: keeper.answer(month)))
    say("all rooms, 30 days", best_ms(lambda: keeper.answer(everything)))
    say("all rooms as one, 30 days", best_ms(lambda: keeper.answer(total)))
    say("one room, 24 h, percentiles by 15 minutes", best_ms(lambda: keeper.answer(quarters)))
    say("one room, 30 days, percentiles by day", best_ms(lambda: keeper.answer(percentiles)))


def writing(keeper: Keeper, rooms: int) -> None:
    """Minutes after the last one that is there."""
    rng = random.Random(2)
    now_ms = (keeper._engine.select("SELECT max(t) FROM minutes")[0][0] + 60) * 1_000
    recorder = Recorder("bench", "here", now_ms)
    took = []
    for _ in range(6):
        for number in range(1, rooms + 1):
            room = f"room-{number}"
            recorder.limited(room, RoomLimits(now_ms, 500, 100, 5))
            for slot in range(12):
                recorder.looked(
                    room, rng.randrange(500), rng.randrange(500), 30, now_ms + slot * 5_000
                )
            for _ in range(20):
                recorder.decided(room, "admitted", now_ms, rng.randrange(300_000))
        now_ms += 60_000
        recorder.close(now_ms)
        (minute,) = recorder.fetch()
        began, cpu = time.perf_counter(), time.process_time()
        keeper.write(minute.parts(), now_ms // 1_000)
        took.append(((time.perf_counter() - began) * 1_000, (time.process_time() - cpu) * 1_000))
    say("write a minute of all rooms", sorted(took)[len(took) // 2])


def recording() -> None:
    recorder = Recorder("bench", "here", 0)
    count = 200_000
    for label, waited in (
        ("record a decision", -1),
        ("record an admission from the line", 123_456),
    ):
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            recorder.decided("room", "held", 1_000, waited)
        say(
            label,
            (
                (time.perf_counter() - began) / count * 1e6,
                (time.process_time() - cpu) / count * 1e6,
            ),
            "us",
        )


def filled(path: Path, rooms: int, days: int) -> Keeper:
    """A store with the whole history; filled once, then opened."""
    there = path.exists()
    engine = DuckEngine(path)
    keeper = Keeper(engine)
    if there:
        return keeper
    with keeper._change():
        keeper._register([f"room-{number}" for number in range(1, rooms + 1)])
    took_s = fill(engine, rooms, days)
    rows = rooms * days * 1_440
    print(
        f"{rows:,} minutes of {rooms} rooms in {took_s:.0f} s; {path.stat().st_size / rows:.1f}"
        " bytes a room and minute"
    )
    began = time.monotonic()
    keeper.tend(BEGIN_S + days * DAY_S + GRACE_S)
    engine._run("CHECKPOINT")
    spent = time.monotonic() - began
    print(
        f"hours and days worked out in {spent:.0f} s, {spent / days / 24:.2f} s an hour;"
        f" {path.stat().st_size / 1e9:.2f} GB",
        flush=True,
    )
    return keeper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument(
        "--store", type=Path, help="keep the filled store here, and take it again when it is there"
    )
    asked = parser.parse_args()
    recording()
    with tempfile.TemporaryDirectory() as folder:
        keeper = filled(asked.store or Path(folder) / "analytics.duckdb", asked.rooms, asked.days)
        questions(keeper, asked.rooms, asked.days)
        writing(keeper, asked.rooms)
        keeper.close()


if __name__ == "__main__":
    main()
