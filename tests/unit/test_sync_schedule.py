"""Which rooms are due when, and how many batches that makes; all in virtual time."""

from admission_world import START_MS, small_room
from msgspec import structs

from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.sync import SyncDown
from greenroom.admission.sync_schedule import BATCHES_PER_S, BURST_MS, SyncSchedule

ROOMS = [f"room{number}" for number in range(50)]


def run(
    schedule: SyncSchedule,
    rooms: list[str],
    seconds: float,
    per_s: dict[str, float] | None = None,
    request_every_ms: int = 0,
) -> list[tuple[int, list[str]]]:
    """Plays a data center: (when, rooms) of each batch. `per_s`: visitors a second of rooms that
    are not quiet.
    """
    batches, now_ms, next_wish_ms = [], 0, request_every_ms
    quiet = Ledger(small_room(), "here", 1, START_MS).report(START_MS)
    while now_ms < seconds * 1000:
        if request_every_ms and now_ms >= next_wish_ms:
            schedule.request(rooms[0], 1)
            next_wish_ms += request_every_ms
        due = schedule.due(now_ms, rooms)
        if due:
            batches.append((now_ms, list(due)))
            for room in due:
                schedule.record(
                    room,
                    structs.replace(quiet, arrivals_per_s=(per_s or {}).get(room, 0.0)),
                    now_ms,
                )
        rest_ms = schedule.rest_ms(now_ms, rooms)
        now_ms += max(1, min(rest_ms, next_wish_ms - now_ms if request_every_ms else rest_ms))
    return batches


def test_quiet_rooms_share_one_letter_every_second_and_a_half() -> None:
    batches = run(SyncSchedule(700), ROOMS, 30)
    assert 19 <= len(batches) <= 22
    assert all(rooms == ROOMS for _, rooms in batches[1:])


def test_a_busy_room_is_due_four_times_a_second_and_takes_the_others_along_only_when_they_are_due() -> (
    None
):
    batches = run(SyncSchedule(0), ROOMS, 30, {"room3": 40.0})
    assert 115 <= len(batches) <= 121
    assert sum("room3" in rooms for _, rooms in batches) == len(batches)
    assert 19 <= sum("room4" in rooms for _, rooms in batches) <= 22


def test_a_room_in_between_is_due_in_between() -> None:
    batches = run(SyncSchedule(0), ["a", "b"], 60, {"a": 0.9, "b": 0.6})
    assert 110 <= sum("a" in rooms for _, rooms in batches) <= 125  # every half second
    assert 75 <= sum("b" in rooms for _, rooms in batches) <= 85  # every three quarters


def test_a_permit_request_is_due_at_once_and_requests_never_make_too_many_batches() -> None:
    schedule = SyncSchedule(0)
    assert schedule.due(0, ["a"]) == {"a": 0}
    assert schedule.due(10, ["a"]) == {}
    schedule.request("a", 2)
    schedule.request("a", 5)
    assert schedule.rest_ms(10, ["a"]) <= 1
    assert schedule.due(11, ["a"]) == {"a": 5}
    batches = run(SyncSchedule(0), ROOMS, 60, {"room0": 50.0}, request_every_ms=20)
    assert len(batches) <= 60 * BATCHES_PER_S + BURST_MS / 1000 * BATCHES_PER_S + 1


def test_a_room_is_due_in_every_slot_while_complete_reports_are_asked_for() -> None:
    schedule, asks = SyncSchedule(0), [True, True, False]
    quiet, answer = (
        Ledger(small_room(), "here", 1, START_MS).report(START_MS),
        SyncDown(1, 1, 1, 0, 0, 0, 0, 0, False, 0),
    )
    synced = []
    for now_ms in range(0, 6_000, 10):
        due = schedule.due(now_ms, ["a", "b"])
        for room_id in due:
            schedule.record(room_id, quiet, now_ms)
        if "a" in due:
            synced.append(now_ms)
            afresh = asks.pop(0) if asks else False
            schedule.answered("a", structs.replace(answer, afresh=afresh))
        assert schedule.rest_ms(now_ms, ["a", "b"]) <= 1_501
    assert synced == [0, 250, 500, 1_500, 3_000, 4_500]


def test_rooms_that_are_gone_are_forgotten() -> None:
    schedule = SyncSchedule(0)
    schedule.due(0, ["a", "b"])
    schedule.request("b", 1)
    schedule.keep(["a"])
    assert schedule.due(2_000, ["a", "b"]) == {"a": 0, "b": 0}
