"""The store of analytics under kill -9, on a full disk, and across versions: nothing counted twice,
nothing lost that was written.

The disk is a small tmpfs in a mount namespace of its own, where the scenario runs as a process
(this file itself).
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from analytics_material import BEGIN_S, a_rollup
from small_disk import fill, run_beside, small_disk

from greenroom.analytics.question import Question, Wanted
from greenroom.analytics.recorder import Recorder
from greenroom.analytics.rollup import Part, Rollup
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.engine import VERSION
from greenroom.analytics.store.keeper import Keeper
from greenroom.errors import StorageFailed

FIRST = BEGIN_S // 60
ROOMS = [f"room-{number}" for number in range(40)]
ROUNDS = 8


def opened(folder: Path) -> Keeper:
    return Keeper(DuckEngine(folder / "analytics.duckdb"))


def a_minute(number: int, source: str = "one") -> list[Part]:
    """In every room as many admissions as the number of the minute says, and histograms of some
    size.
    """
    rng = random.Random(number)
    found = []
    for room in ROOMS:
        rollup = a_rollup(rng, busy=1)
        found.append(
            Part(
                source,
                FIRST + number,
                room,
                Rollup(
                    {"admitted": number % 7 + 1}, rollup.tracks, None, rollup.waited, rollup.origin
                ),
            )
        )
    return found


def write(keeper: Keeper, number: int) -> None:
    now_s = (FIRST + number + 1) * 60
    keeper.write(a_minute(number), now_s)
    keeper.tend(now_s)


def admitted(keeper: Keeper) -> dict[int, int]:
    """Minute number -> people let in, over all rooms; the sum over hours and days must be the same."""
    question = Question(
        0, 1 << 32, dimensions=("datetimeMinute",), metrics=(Wanted("sum", "newUsersPerMinute"),)
    )
    rows = keeper.answer(question).rows
    whole = keeper.answer(Question(0, 1 << 32, metrics=question.metrics)).rows
    assert sum(int(row["sum", "newUsersPerMinute"] or 0) for row in rows) == (
        whole[0]["sum", "newUsersPerMinute"] if whole else 0
    )
    from datetime import datetime

    minutes = [
        int(datetime.fromisoformat(str(row["", "datetimeMinute"])).timestamp()) // 60 - FIRST
        for row in rows
    ]
    return dict(
        zip(minutes, [int(row["sum", "newUsersPerMinute"] or 0) for row in rows], strict=True)
    )


def expected(numbers: range) -> dict[int, int]:
    return {number: len(ROOMS) * (number % 7 + 1) for number in numbers}


def writes_for_ever(folder: Path) -> None:
    keeper = opened(folder)
    number = max(admitted(keeper), default=-1) + 1
    while True:
        write(keeper, number)
        print(number, flush=True)
        number += 1


def test_kill_9_at_any_instant_loses_nothing_that_was_written_and_counts_nothing_twice(
    tmp_path: Path,
) -> None:
    rng = random.Random(7)
    last = -1
    for _ in range(ROUNDS):
        child = subprocess.Popen(
            [sys.executable, __file__, "write", str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for _ in range(rng.randrange(1, 40)):
            last = int(child.stdout.readline())
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(rng.random() * 0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
        last = max([last, *map(int, child.stdout.read().split())])
        child.stdout.close()
        keeper = opened(tmp_path)
        found = admitted(keeper)
        assert found == expected(range(len(found)))
        assert len(found) in (last + 1, last + 2), (
            "what was acknowledged is there, and at most one minute more"
        )
        keeper.write(a_minute(len(found) - 1), (FIRST + len(found)) * 60)
        assert admitted(keeper) == found, (
            "a process that does not know whether it was heard may say it again"
        )
        keeper.close()


def on_a_small_disk(disk: Path) -> None:
    """The scenario, in a mount namespace of its own."""
    small_disk(disk, "24m")
    keeper = opened(disk)
    write(keeper, 0)
    filler = fill(disk)
    failed, number = 0, 1
    while failed < 3:
        try:
            write(keeper, number)
            number += 1
        except StorageFailed:
            failed += 1
        assert number < 2_000, "the disk does not fill up"
    before = admitted(keeper)
    assert before in (expected(range(number)), expected(range(number + 1))), (
        "all of a minute, or nothing"
    )
    filler.unlink()
    for again in range(number, number + 70):
        write(keeper, again)
    assert admitted(keeper) == expected(range(number + 70))
    keeper.close()
    keeper = opened(disk)
    assert admitted(keeper) == expected(range(number + 70))


@pytest.mark.needs("mount")
def test_a_full_disk_loses_no_written_minute_and_all_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    run_beside(__file__, "disk", tmp_path)


def test_a_clock_that_jumps_back_an_hour_counts_nothing_twice_and_loses_nothing(
    tmp_path: Path,
) -> None:
    """While a process records, and again between its end and its next start."""
    keeper = opened(tmp_path)
    written = 0

    def run(source: str, times: list[int]) -> None:
        nonlocal written
        recorder = Recorder(source, "here", times[0] * 60_000)
        for minute in times:
            for second in range(0, 60, 10):
                recorder.decided("shop", "admitted", minute * 60_000 + second * 1_000)
                written += 1
            recorder.close(minute * 60_000)
            for closed in recorder.fetch():
                keeper.write(list(closed.parts()), (minute + 1) * 60)
        recorder.finish()
        for closed in recorder.fetch():
            keeper.write([*closed.parts(), *closed.parts()], (times[-1] + 1) * 60)
        keeper.tend((times[-1] + 1) * 60)

    run("first", [*range(FIRST, FIRST + 130), *range(FIRST + 70, FIRST + 140)])
    run("second", list(range(FIRST + 80, FIRST + 150)))
    assert sum(admitted(keeper).values()) == written
    keeper.close()


def test_of_a_process_that_is_killed_in_its_first_minute_that_minute_is_marked(
    tmp_path: Path,
) -> None:
    keeper = opened(tmp_path)
    keeper.begin(FIRST)
    write(keeper, 0)
    write(keeper, 1)  # a part of a minute, because it ends
    keeper.end()
    keeper.close()
    killed = opened(tmp_path)
    killed.begin(FIRST + 1)
    killed.close()
    keeper = opened(tmp_path)
    assert keeper.begin(FIRST + 2) == len(ROOMS)
    write(keeper, 2)
    question = Question(
        0, 1 << 32, dimensions=("datetimeMinute",), metrics=(Wanted("sum", "minutesIncomplete"),)
    )
    marked = [row["sum", "minutesIncomplete"] for row in keeper.answer(question).rows]
    keeper.close()
    assert marked == [0, len(ROOMS), 0]


def test_the_file_is_private_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, modes, connect = tmp_path / "analytics.duckdb", [], duckdb.connect

    def noted(name: str, **how: Any) -> duckdb.DuckDBPyConnection:
        opened = connect(name, **how)
        modes.extend(file.stat().st_mode & 0o777 for file in tmp_path.iterdir())
        return opened

    monkeypatch.setattr(duckdb, "connect", noted)
    DuckEngine(path).close()
    assert modes == [0o700, 0o600], "first a folder that is closed to others, then the file"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_is_private_before_and_after_a_checkpoint(tmp_path: Path) -> None:
    path, modes = tmp_path / "analytics.duckdb", []
    engine = DuckEngine(path)
    keeper = Keeper(engine)
    for number in range(3):
        write(keeper, number)
        log = path.with_name("analytics.duckdb.wal")
        modes += [file.stat().st_mode & 0o777 for file in (path, log)]
        engine.read("CHECKPOINT")
        assert not log.exists()
    assert modes == [0o600] * 6
    keeper.close()


def test_a_file_of_a_newer_program_is_refused_with_a_reason_and_left_alone(tmp_path: Path) -> None:
    keeper = opened(tmp_path)
    write(keeper, 0)
    keeper.close()
    with duckdb.connect(str(tmp_path / "analytics.duckdb")) as connection:
        connection.execute(f"UPDATE facts SET value = {VERSION + 1} WHERE name = 'version'")
    with pytest.raises(StorageFailed, match=r"newer greenroom \(version"):
        opened(tmp_path)
    with duckdb.connect(str(tmp_path / "analytics.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM minutes").fetchall() == [(len(ROOMS),)]


def test_a_file_that_is_no_store_is_refused_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "analytics.duckdb").write_bytes(os.urandom(20_000))
    with pytest.raises(StorageFailed, match=r"analytics\.duckdb"):
        opened(tmp_path)


if __name__ == "__main__":
    {"write": writes_for_ever, "disk": on_a_small_disk}[sys.argv[1]](Path(sys.argv[2]))
