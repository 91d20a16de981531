"""A data center without contact stops by itself, and the coordinator gives its units to others when
its last session must have ended.
"""

import dataclasses
from typing import Any

import pytest
from admission_world import START_MS, small_room, ticket_id
from broken_builds import around, must_be_found
from msgspec.structs import replace

from greenroom.admission import Coordinator, Ledger, problems
from greenroom.admission.coordinator.fence import FENCE_SLACK_MS, NEVER_MS, FencesInForce
from greenroom.admission.coordinator.memory import StoredCoordinator, center_row, recalled, room_row
from greenroom.model.visit import Standing, make_key

FENCE_MS = 30_000


class Two:
    """Oslo syncs; Paris does while it is in touch."""

    def __init__(self, fence_ms: int = FENCE_MS) -> None:
        self.room = small_room(total_active_users=4, new_users_per_minute=40)
        self.now_ms = START_MS
        self.coordinator = Coordinator(["paris", "oslo"], self.room, self.now_ms)
        self.coordinator.fence_ms = fence_ms
        self.paris, self.oslo = (
            Ledger(self.room, name, 1, self.now_ms) for name in ("paris", "oslo")
        )
        self.in_touch = True
        self.contact_ms = 0
        self.pass_time(2_000)

    def sync(self, ledger: Ledger, want: int = 0) -> None:
        up = ledger.report(self.now_ms, want)
        if ledger is self.oslo or self.in_touch:
            ledger.apply(self.coordinator.sync(up, self.now_ms, 0), self.now_ms)
            self.contact_ms = self.now_ms if ledger is self.paris else self.contact_ms

    def pass_time(self, ms: int) -> None:
        for _ in range(ms // 500):
            self.now_ms += 500
            for ledger in (self.paris, self.oslo):
                ledger.sweep(self.now_ms)
                self.sync(ledger)
            assert problems(self.coordinator, [self.paris, self.oslo]) == []

    def lasts(self, minutes: int) -> None:
        """Sessions of both."""
        self.room = dataclasses.replace(self.room, session_duration=minutes)
        self.coordinator.configure(self.room)
        for ledger in (self.paris, self.oslo):
            ledger.configure(self.room, self.now_ms)
        self.pass_time(2_000)

    def pass_until(self, ms: int) -> None:
        self.pass_time(ms - self.now_ms)

    def fill(self, ledger: Ledger, first: int) -> int:
        """As many as get in."""
        for number in range(first, first + 10):
            self.sync(ledger, 2)
            if ledger.arrive(ticket_id(number), self.now_ms, 0).standing is not Standing.ADMITTED:
                return number - first
            self.pass_time(2_000)
        return 10

    @property
    def life_ms(self) -> int:
        return self.room.session_ms + self.room.renewal_age_ms


def test_units_of_a_dead_data_center_are_free_one_session_after_the_fence() -> None:
    two = Two()
    assert two.fill(two.paris, 1) >= 3
    two.in_touch = False
    held = two.coordinator.data_centers["paris"].held
    given_up_ms = two.contact_ms + FENCE_MS + FENCE_SLACK_MS
    two.pass_until(given_up_ms - 500)
    assert two.coordinator.data_centers["paris"].held == held
    two.pass_until(given_up_ms + two.life_ms + 4_000)
    assert two.coordinator.data_centers["paris"].orphans == held
    two.pass_until(given_up_ms + two.life_ms + 6_000)
    assert two.coordinator.data_centers["paris"].orphans == 0
    assert two.fill(two.oslo, 40) >= held


def test_units_are_free_one_session_after_an_operator_says_that_a_data_center_is_dead() -> None:
    two = Two(fence_ms=0)
    assert two.fill(two.paris, 1) >= 3
    two.in_touch = False
    two.pass_time(5_000)
    held = two.coordinator.data_centers["paris"].held
    two.coordinator.give_up("paris", two.now_ms)
    two.coordinator.give_up("paris", two.now_ms)
    given_up_ms = two.now_ms
    assert two.fill(two.oslo, 20) <= 4 - held
    two.pass_until(given_up_ms + two.life_ms + 4_000)
    assert two.coordinator.data_centers["paris"].orphans == held
    two.pass_until(given_up_ms + two.life_ms + 6_000 + two.life_ms)
    assert two.coordinator.data_centers["paris"].orphans == 0
    assert two.fill(two.oslo, 40) >= held


def test_a_data_center_that_was_not_dead_is_heard_again_and_takes_its_sessions_back() -> None:
    two = Two()
    two.fill(two.paris, 1)
    two.in_touch = False
    two.pass_time(5_000)
    two.coordinator.give_up("paris", two.now_ms)
    sessions, epoch = len(two.paris.sessions.inside), two.paris.epoch
    two.in_touch = True
    two.pass_time(2_000)
    assert two.paris.epoch > epoch
    assert len(two.paris.sessions.inside) == sessions >= 3
    paris = two.coordinator.data_centers["paris"]
    assert paris.held >= sessions
    assert (
        two.coordinator.pool
        + paris.held
        + paris.orphans
        + two.coordinator.data_centers["oslo"].held
        == 4
    )


def test_what_a_lost_coordinator_knew_is_not_freed_by_a_word() -> None:
    two = Two()
    filled = two.fill(two.paris, 1)
    two.in_touch = False
    two.coordinator = Coordinator(["paris", "oslo"], two.room, two.now_ms)
    two.coordinator.fence_ms = FENCE_MS
    two.pass_time(5_000)
    two.coordinator.give_up("paris", two.now_ms)
    two.pass_time(5_000)
    assert two.coordinator.doubting
    assert two.fill(two.oslo, 40) <= 4 - filled


def test_without_a_fence_they_are_kept_for_ever() -> None:
    two = Two(fence_ms=0)
    two.fill(two.paris, 1)
    two.in_touch = False
    held = two.coordinator.data_centers["paris"].held
    two.pass_time(3_600_000)
    assert two.coordinator.data_centers["paris"].held == held >= 3


def test_behind_the_fence_no_visitor_is_let_in_and_no_session_renewed() -> None:
    two = Two()
    two.fill(two.paris, 1)
    two.in_touch = False
    two.pass_until(two.contact_ms + FENCE_MS - 500)
    paris = two.paris
    alive = next(iter(paris.sessions.inside))
    assert paris.view(alive, two.now_ms).renewed_ms == two.now_ms
    two.pass_time(10_000)
    assert paris.view(alive, two.now_ms).renewed_ms == two.contact_ms + FENCE_MS - 500
    paris.lease.permits, paris.lease.granted_seen = (
        paris.lease.permits + 1,
        paris.lease.granted_seen + 1,
    )
    assert paris.arrive(ticket_id(50), two.now_ms, 0).standing is Standing.WAITING
    assert (
        paris.poll(ticket_id(51), make_key(START_MS, 1), two.now_ms, 0).standing is Standing.WAITING
    )
    assert paris.admit_mover(ticket_id(52), two.now_ms) is None
    assert (
        paris.view(alive, two.contact_ms + FENCE_MS - 500 + two.life_ms).standing is Standing.GONE
    )


def test_a_data_center_that_comes_back_begins_a_new_epoch_and_goes_on() -> None:
    two = Two()
    two.fill(two.paris, 1)
    two.in_touch = False
    two.pass_time(FENCE_MS + FENCE_SLACK_MS + 2_000)
    sessions, epoch = len(two.paris.sessions.inside), two.paris.epoch
    two.in_touch = True
    two.pass_time(2_000)
    assert two.paris.epoch > epoch
    assert len(two.paris.sessions.inside) == sessions >= 3
    assert two.coordinator.data_centers["paris"].held >= sessions
    two.pass_time(two.life_ms + 10_000)
    assert (
        two.coordinator.pool + sum(center.held for center in two.coordinator.data_centers.values())
        == 4
    )
    assert two.fill(two.paris, 60) >= 3


def test_the_next_coordinator_gives_up_a_data_center_that_it_has_never_heard() -> None:
    two = Two()
    two.fill(two.paris, 1)
    rows = {name: center_row(center, ()) for name, center in two.coordinator.data_centers.items()}
    assert rows["paris"].fence_ms == FENCE_MS
    two.in_touch = False
    two.coordinator = recalled(
        two.room, ["paris", "oslo"], StoredCoordinator(room_row(two.coordinator), rows), two.now_ms
    )
    two.coordinator.fence_ms = FENCE_MS
    began_ms = two.now_ms
    two.pass_until(began_ms + FENCE_MS + FENCE_SLACK_MS - 500)
    assert two.coordinator.data_centers["paris"].held >= 3
    two.pass_until(began_ms + FENCE_MS + FENCE_SLACK_MS + two.life_ms + 7_000)
    assert (
        two.coordinator.data_centers["paris"].held
        == two.coordinator.data_centers["paris"].orphans
        == 0
    )


@pytest.mark.parametrize("handed_over", [True, False])
def test_longer_sessions_of_a_silent_data_center_outlast_a_shorter_duration(
    handed_over: bool,
) -> None:
    two = Two()
    shorter = two.room
    two.lasts(5)
    assert two.fill(two.paris, 1) >= 3
    two.in_touch = False
    held, longer_ms = two.coordinator.data_centers["paris"].held, two.life_ms
    two.room = shorter
    two.coordinator.configure(shorter)
    if handed_over:
        rows = {
            name: center_row(center, ()) for name, center in two.coordinator.data_centers.items()
        }
        two.coordinator = recalled(
            shorter,
            ["paris", "oslo"],
            StoredCoordinator(room_row(two.coordinator), rows),
            two.now_ms,
        )
        two.coordinator.fence_ms = FENCE_MS
    two.pass_until(two.contact_ms + FENCE_MS + FENCE_SLACK_MS + longer_ms)
    paris = two.coordinator.data_centers["paris"]
    assert paris.orphans == held
    two.pass_time(10_000)
    assert paris.orphans == 0


def lost_coordinator(fence_ms: int = FENCE_MS) -> Two:
    """Paris has permits and is cut off; then the coordinator loses its state."""
    two = Two(fence_ms)
    two.sync(two.paris, 2)
    assert two.paris.lease.permits
    two.in_touch = False
    two.coordinator = Coordinator(["paris", "oslo"], two.room, two.now_ms)
    two.coordinator.fence_ms = fence_ms
    return two


def permits_in_oslo(two: Two) -> int:
    """As many as it gets."""
    for _ in range(4):
        two.sync(two.oslo, 4)
    return two.oslo.lease.permits


def test_a_coordinator_that_lost_its_state_waits_for_a_silent_data_center_until_its_fence_has_ended_its_sessions() -> (
    None
):
    two = lost_coordinator()
    began_ms = two.now_ms
    before = permits_in_oslo(two)
    two.pass_until(began_ms + two.life_ms + FENCE_MS + FENCE_SLACK_MS + 4_000)
    assert permits_in_oslo(two) == before < 4
    two.pass_until(began_ms + two.life_ms + FENCE_MS + FENCE_SLACK_MS + 6_000)
    assert permits_in_oslo(two) == 4


def test_a_data_center_that_was_waited_for_in_vain_brings_no_permits_back() -> None:
    two = lost_coordinator()
    two.pass_time(two.life_ms + FENCE_MS + FENCE_SLACK_MS + 8_000)
    assert two.fill(two.oslo, 1) == 4
    permits, epoch = two.paris.lease.permits, two.paris.epoch
    assert permits
    two.in_touch = True
    two.sync(two.paris)
    assert two.paris.epoch > epoch
    two.pass_time(2_000)
    assert two.fill(two.paris, 40) == 0
    assert two.coordinator.pool == 0


def test_without_a_fence_it_waits_until_the_silent_one_is_off_the_list_and_its_sessions_are_over() -> (
    None
):
    two = lost_coordinator(fence_ms=0)
    two.pass_time(3_600_000)
    assert permits_in_oslo(two) < 4
    two.coordinator.enlist(["oslo"], two.now_ms)
    two.pass_time(two.oslo.life_ms + 4_000)
    assert permits_in_oslo(two) < 4
    two.pass_time(1_500)
    assert permits_in_oslo(two) == 4


def listed_again(away_ms: int, fence_ms: int, known: bool) -> list[str]:
    """Paris is taken off the list, and comes back with the permits that it had."""
    two = lost_coordinator(fence_ms)
    two.in_touch = known
    two.pass_time(2_000)
    permits = two.paris.lease.permits
    two.coordinator.enlist(["oslo"], two.now_ms)
    two.now_ms += away_ms
    for number in 4 * (1, 2, 3, 4):
        two.now_ms += 500
        two.oslo.sweep(two.now_ms)
        two.sync(two.oslo, 2)
        two.oslo.poll(ticket_id(number), make_key(START_MS, number), two.now_ms, 0)
    two.coordinator.enlist(["oslo", "paris"], two.now_ms)
    two.in_touch = True
    two.sync(two.paris)
    left = 4 - len(two.oslo.sessions.inside)
    assert permits > left or away_ms < two.life_ms
    for number in range(10, 14):
        two.paris.poll(ticket_id(number), make_key(two.now_ms, number), two.now_ms, 0)
    two.pass_time(2_000)
    inside, pool = len(two.paris.sessions.inside), two.coordinator.pool
    return [f"{inside} inside, {left} left, {pool} in the pool"] * (inside > left or pool < 0)


AWAY = [
    (away_ms, fence_ms, known)
    for away_ms in (5_000, 120_000, 3_600_000)
    for fence_ms in (0, FENCE_MS)
    for known in (True, False)
]


def test_a_data_center_that_is_listed_again_admits_with_no_permit_of_before() -> None:
    assert [found for away in AWAY for found in listed_again(*away)] == []


@pytest.mark.needs("patching")
@pytest.mark.parametrize("away", [AWAY[4], AWAY[-1]])
def test_a_build_that_takes_its_word_for_them_is_found(
    away: tuple[int, int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trusts(original: Any, self: Coordinator, center: Any, up: Any, now_ms: int) -> None:
        original(self, center, replace(up, applied=0), now_ms)

    def build(patch: pytest.MonkeyPatch) -> None:
        around(patch, Coordinator, "_greet", trusts)

    must_be_found(lambda: listed_again(*away), build, monkeypatch)


def test_the_longest_fence_counts_until_a_later_one_is_in_force() -> None:
    fences = FencesInForce()
    assert fences.longest_ms == NEVER_MS
    fences.confirm(0, 0)
    fences.say(1, 60_000)
    fences.say(2, 60_000)
    assert fences.longest_ms == NEVER_MS
    fences.confirm(1, 60_000)
    assert fences.longest_ms == 60_000
    fences.say(3, 120_000)
    fences.say(4, 30_000)
    assert fences.longest_ms == 120_000
    fences.confirm(2, 60_000)
    assert fences.longest_ms == 120_000
    fences.confirm(4, 30_000)
    assert fences.longest_ms == 30_000
    fences.say(5, 0)
    assert fences.longest_ms == NEVER_MS
