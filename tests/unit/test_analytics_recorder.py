"""One process counts its minutes: what goes where, and what happens when time or the reader
misbehaves.
"""

from collections.abc import Iterable

from greenroom.analytics import histogram
from greenroom.analytics.recorder import MINUTES_KEPT, ClosedMinute, Recorder
from greenroom.analytics.rollup import SLOTS, Part, RoomLimits, RoomTarget

BEGIN_MS = 1_893_456_000_000


def a_recorder() -> Recorder:
    return Recorder("process-1", "here", BEGIN_MS)


def parts(minutes: Iterable[ClosedMinute]) -> dict[tuple[int, str], Part]:
    return {
        (part.minute - BEGIN_MS // 60_000, part.room): part
        for minute in minutes
        for part in minute.parts()
    }


def test_a_decision_counts_in_the_minute_of_its_own_time() -> None:
    recorder = a_recorder()
    recorder.decided("r", "admitted", BEGIN_MS, 12_345)
    recorder.decided("r", "held", BEGIN_MS + 59_999)
    recorder.decided("r", "admitted", BEGIN_MS + 60_000)
    recorder.close(BEGIN_MS + 120_000)
    found = parts(recorder.fetch())
    assert found.keys() == {(0, "r"), (1, "r")}
    assert found[0, "r"].rollup.outcomes == {"admitted": 1, "held": 1}
    assert found[0, "r"].rollup.waited == {histogram.bucket_of(12_345): 1}
    assert found[1, "r"].rollup.waited == {}, "let in at first sight: there was no wait"
    assert {part.source for part in found.values()} == {"process-1"}


def test_looks_stand_in_the_slot_of_their_time_and_the_highest_counts() -> None:
    recorder = a_recorder()
    recorder.looked("r", 5, 2, 30, BEGIN_MS + 1_000)
    recorder.looked("r", 3, 4, None, BEGIN_MS + 2_000)
    recorder.looked("r", 9, 0, None, BEGIN_MS + 59_000)
    recorder.close(BEGIN_MS + 60_000)
    track = parts(recorder.fetch())[0, "r"].rollup.tracks["here"]
    assert track.active == (5, *[-1] * (SLOTS - 2), 9)
    assert track.queued == (4, *[-1] * (SLOTS - 2), 0)
    assert track.wait_s == (30, *[-1] * (SLOTS - 1))


def test_the_limits_at_the_end_of_a_minute_count_for_it() -> None:
    recorder = a_recorder()
    recorder.limited("r", RoomLimits(BEGIN_MS, 100, 10, 5))
    recorder.limited("r", RoomLimits(BEGIN_MS + 30_000, 200, 20, 5))
    recorder.close(BEGIN_MS + 60_000)
    assert parts(recorder.fetch())[0, "r"].rollup.limits == RoomLimits(
        BEGIN_MS + 30_000, 200, 20, 5
    )


def test_the_target_at_the_end_of_a_minute_counts_and_that_it_ever_stopped() -> None:
    recorder = a_recorder()
    recorder.targeted("r", RoomTarget(BEGIN_MS, 100, 90))
    recorder.targeted("r", RoomTarget(BEGIN_MS + 5_000, 80, 70, stopped=True))
    recorder.targeted("r", RoomTarget(BEGIN_MS + 30_000, 85, 80))
    recorder.close(BEGIN_MS + 60_000)
    assert parts(recorder.fetch())[0, "r"].rollup.target == RoomTarget(
        BEGIN_MS + 30_000, 85, 80, stopped=True
    )


def test_counts_and_stays_come_in_bulk() -> None:
    recorder = a_recorder()
    recorder.counted("r", "abandoned", 3, BEGIN_MS)
    recorder.counted("r", "abandoned", 0, BEGIN_MS)
    recorder.counted("quiet", "abandoned", 0, BEGIN_MS)
    recorder.stayed("r", [1_000, 1_000, 2_000], BEGIN_MS)
    recorder.finish()
    found = parts(recorder.fetch())
    assert found.keys() == {(0, "r")}, "nothing happened in the other room"
    assert found[0, "r"].rollup.outcomes == {"abandoned": 3}
    assert found[0, "r"].rollup.origin == {1_000: 2, 2_000: 1}


def test_a_clock_that_jumps_back_opens_no_minute_again() -> None:
    recorder = a_recorder()
    recorder.decided("r", "held", BEGIN_MS)
    recorder.decided("r", "held", BEGIN_MS + 60_000)
    recorder.decided("r", "held", BEGIN_MS - 3_600_000)
    recorder.looked("r", 1, 1, None, BEGIN_MS - 3_600_000)
    recorder.close(BEGIN_MS - 3_600_000)
    recorder.finish()
    found = parts(recorder.fetch())
    assert {key: part.rollup.outcomes["held"] for key, part in found.items()} == {
        (0, "r"): 1,
        (1, "r"): 2,
    }


def test_a_minute_in_which_nothing_happened_is_no_message() -> None:
    recorder = a_recorder()
    recorder.close(BEGIN_MS + 600_000)
    assert recorder.fetch() == []


def test_what_is_not_fetched_is_dropped_oldest_first_and_counted() -> None:
    recorder = a_recorder()
    for minute in range(MINUTES_KEPT + 3):
        recorder.decided("r", "held", BEGIN_MS + minute * 60_000)
    recorder.finish()
    assert recorder.dropped_minutes == 3
    assert min(parts(recorder.fetch()))[0] == 3


def test_what_could_not_be_passed_on_goes_back_to_its_place() -> None:
    recorder = a_recorder()
    for minute in range(3):
        recorder.decided("r", "held", BEGIN_MS + minute * 60_000)
    taken = recorder.fetch()
    recorder.finish()
    recorder.give_back(taken)
    assert [minute.minute - BEGIN_MS // 60_000 for minute in recorder.fetch()] == [0, 1, 2]
    for minute in range(3, 5 + MINUTES_KEPT):
        recorder.decided("r", "held", BEGIN_MS + minute * 60_000)
    recorder.give_back(taken)
    assert recorder.dropped_minutes > 0
    assert len(recorder.fetch()) == MINUTES_KEPT
